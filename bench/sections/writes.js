import { measure, startApp } from '../measure.js'
import { printTable, ratioHeads, ratioRow } from '../table.js'

const few = [{ kind: 'write', pool: 'few', status: 201 }]
const fresh = [{ kind: 'write', pool: 'fresh', status: 201 }]

/** Writes with an idempotency key or a single-use token on Redis, against the same without. */
export async function writes(bench) {
  // A token counts as consumed until the next run: there are more tokens than requests in one.
  const before = () => bench.redis.client.flushdb()
  const [bare, ours, peer, plain, single] = await measure(
    bench,
    [
      { label: 'bare POST', app: 'plainWrite', turns: few, before },
      { label: 'requireIdempotencyKey', app: 'idempotentWrite', turns: few, before },
      { label: 'express-idempotency', app: 'expressIdempotency', turns: few, before },
      { label: 'every token new', app: 'plainWrite', turns: fresh, before },
      { label: 'requireSingleUse', app: 'singleUseWrite', turns: fresh, before },
    ],
    bench.timing,
  )
  const heads = ratioHeads('', 'it')
  printTable('Idempotent writes on Redis, all behind serviceAuth', ratioHeads('', 'bare'), [
    ratioRow(bare),
    ratioRow(ours, bare, 0.85),
    ratioRow(peer, bare),
  ])
  const [, , , ...againstPeer] = ratioRow(ours, peer, 1.25)
  printTable(
    'The same against express-idempotency with its Redis adapter',
    heads.slice(0, 1).concat(heads.slice(3)),
    [['requireIdempotencyKey', ...againstPeer]],
  )
  printTable('Single use on Redis, every token new', ratioHeads('', 'without'), [
    ratioRow(plain),
    ratioRow(single, plain, 0.9),
  ])
  await cost(bench)
}

const REQUESTS = 50

/** What one request costs Redis: commands that travel, and the memory that stays. */
async function cost(bench) {
  const rows = [
    await costOf(bench, 'requireSingleUse', 'singleUseWrite', { trips: 1, bytes: 150 }),
    await costOf(bench, 'requireIdempotencyKey', 'idempotentWrite', { trips: 2, bytes: 350 }),
  ]
  const heads = ['', 'round trips', 'reached', 'bytes beyond the response', 'reached']
  printTable('What a request costs Redis', heads, rows)
}

async function costOf(bench, label, app, most) {
  const { client } = bench.redis
  const { node, port } = await startApp({ app }, bench)
  try {
    await post(bench, port)
    await client.flushdb()
    const monitor = await client.monitor()
    let trips = 0
    monitor.on('monitor', (_time, [command], source) => {
      if (source !== 'lua' && !/^(info|ping|scan|memory|get)$/i.test(command)) trips += 1
    })
    for (let sent = 0; sent < REQUESTS; sent += 1) await post(bench, port)
    // The monitor sees its own probe last.
    const seen = new Promise((resolve) => {
      monitor.on('monitor', (_time, [command]) => command.toLowerCase() === 'ping' && resolve())
    })
    await client.ping()
    await seen
    monitor.disconnect()
    const bytes = await largestRecord(client)
    const perRequest = trips / REQUESTS
    return [
      label,
      perRequest.toFixed(2),
      `${perRequest <= most.trips ? 'yes' : 'NO'}, at most ${most.trips}`,
      bytes,
      `${bytes <= most.bytes ? 'yes' : 'NO'}, at most ${most.bytes}`,
    ]
  } finally {
    await node.stop()
  }
}

async function post(bench, port) {
  const [token] = await bench.issuer.mint(1)
  const response = await fetch(`http://127.0.0.1:${port}/orders`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'Idempotency-Key': crypto.randomUUID(),
    },
    body: JSON.stringify({ item: 'book', quantity: 2 }),
  })
  if (response.status !== 201) throw new Error(`a write was answered ${response.status}`)
  await response.arrayBuffer()
}

const RESPONSE = JSON.stringify({ id: '17', item: 'book', quantity: 2, state: 'open' })

async function largestRecord(client) {
  const [, keys] = await client.scan(0, 'COUNT', 10 * REQUESTS)
  const sizes = await Promise.all(
    keys.map(async (key) => {
      const value = await client.getBuffer(key)
      const responseBytes = value.includes(RESPONSE) ? RESPONSE.length : 0
      return (await client.memory('USAGE', key)) - responseBytes
    }),
  )
  return Math.max(...sizes)
}
