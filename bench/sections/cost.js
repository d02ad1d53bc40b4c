import { startApp } from '../measure.js'
import { atMost, printTable } from '../table.js'

const REQUESTS = 50
const SINGLE_USE = { label: 'requireSingleUse', app: 'singleUseWrite', trips: 1, bytes: 120 }
const IDEMPOTENT = { label: 'requireIdempotencyKey', app: 'idempotentWrite', trips: 2, bytes: 339 }

/** What one request costs Redis: commands that travel, and the memory that stays. */
export async function cost(bench) {
  printTable(
    ['what a request costs Redis', 'round trips', 'aim', 'bytes beyond the response', 'aim'],
    [await costOf(bench, SINGLE_USE), await costOf(bench, IDEMPOTENT)],
  )
}

async function costOf(bench, { label, app, trips: mostTrips, bytes: maxBytes }) {
  const { client } = bench.redis
  const { node, port } = await startApp(bench, { app })
  try {
    await post(bench, port)
    await client.flushdb()
    const trips = await countCommands(client, async () => {
      for (let sent = 0; sent < REQUESTS; sent += 1) await post(bench, port)
    })
    const perRequest = trips / REQUESTS
    const bytes = await largestRecord(client)
    const tripCells = [perRequest.toFixed(2), atMost(mostTrips, perRequest)]
    return [label, ...tripCells, bytes, atMost(maxBytes, bytes)]
  } finally {
    await node.stop()
  }
}

/** How many commands reach Redis meanwhile; what a script calls and the monitor's own does not count. */
async function countCommands(client, work) {
  const monitor = await client.monitor()
  let count = 0
  monitor.on('monitor', (_time, [command], source) => {
    if (source !== 'lua' && !/^(info|ping)$/i.test(command)) count += 1
  })
  await work()
  const hasSeenAll = new Promise((resolve) => {
    monitor.on('monitor', (_time, [command]) => command.toLowerCase() === 'ping' && resolve())
  })
  await client.ping()
  await hasSeenAll
  monitor.disconnect()
  return count
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
