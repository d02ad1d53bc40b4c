import { importEntry } from '../build.js'
import { cheapest } from '../figures.js'
import { claims } from '../issuer.js'
import { measure } from '../measure.js'
import { startPostgres } from '../postgres.js'
import { atMost, printTable } from '../table.js'
import { FULL, fillDenylist } from './denylist.js'
import { fillRecords } from './postgres-cost.js'

const REMEMBERED = 100_000
/** Long enough to send each of them once. */
const FILL_MS = 20_000
const RECORDS = { redis: 10_000_000, postgres: 1_000_000 }
const BYTES_OF_RECORD = 200
const MAX_RATIO = 1.05

const read = (pool, settings) => ({
  app: 'read',
  settings,
  requests: [{ kind: 'read', pool, status: 200 }],
})
const write = (app, settings) => ({
  app,
  settings,
  requests: [{ kind: 'write', pool: 'few', status: 201 }],
})

/** What a request costs where there is much of something, beside the same request where there is little. */
export async function growth(bench) {
  await mintPools(bench)
  await fillDenylist(bench)
  const cache = { tokenCache: { max: REMEMBERED } }
  const costs = await costsOf(bench, {
    'few of all': read('few'),
    '10 callers': read('few', { callers: callersOf(10) }),
    '100 callers': read('few', { callers: callersOf(100) }),
    '10,000 denied': { ...read('few', FULL), app: 'denylistRead' },
    '1,000 permissions in a token': read('permissions', { callers: ['billing'] }),
    '100,000 remembered tokens, in turn': { ...read('remembered', cache), warmUpMs: FILL_MS },
  })
  const rows = Object.entries(costs).map(([label, cost]) => rowOf(label, cost, costs['few of all']))
  rows.push(...(await writesOnRedis(bench)), ...(await writesOnPostgres(bench)))
  printTable(['growth', 'µs', 'of few', 'aim'], rows)
}

function rowOf(label, cost, ofFew) {
  const ratio = cost / ofFew
  const aim = label.includes('permissions') ? undefined : MAX_RATIO
  return [label, cost.toFixed(1), ratio.toFixed(2), atMost(aim, Number(ratio.toFixed(2)))]
}

async function costsOf(bench, contenders) {
  const costs = await measure(bench, Object.values(contenders))
  return Object.fromEntries(
    Object.keys(contenders).map((label, index) => [label, cheapest(costs[index])]),
  )
}

async function mintPools({ issuer, load }) {
  // Two characters each: the token stays below 8 KiB.
  const others = Array.from({ length: 999 }, (_, index) => (index + 36).toString(36))
  const permissions = [...others, 'orders:read']
  await load.ask({
    pools: {
      permissions: await issuer.mint(1, (iss) => ({ ...claims(iss), permissions })),
      remembered: await issuer.mint(REMEMBERED),
    },
  })
}

const callersOf = (count) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [
      index === count - 1 ? 'billing' : `caller-${index}`,
      ['orders:read', 'orders:write'],
    ]),
  )

async function writesOnRedis(bench) {
  const { client } = bench.redis
  await client.flushall()
  const label = 'Redis, an idempotent write'
  const few = await costsOf(bench, { [label]: write('idempotentWrite') })
  await client.call('debug', 'populate', RECORDS.redis, 'esa', BYTES_OF_RECORD)
  const many = await costsOf(bench, { [label]: write('idempotentWrite') })
  await client.flushall()
  return [
    rowOf(label, few[label], few[label]),
    rowOf('the same beside 10 million records', many[label], few[label]),
  ]
}

async function writesOnPostgres(bench) {
  const server = await startPostgres()
  try {
    const { migration } = await importEntry(bench.settings.build, './postgres')
    await server.pool.query(migration())
    await server.pool.query(
      'create table orders (id bigserial primary key, item text not null, quantity integer not null)',
    )
    const label = 'Postgres, a coupled write'
    const coupled = { [label]: write('coupled', { postgresUrl: server.url, library: 'pg' }) }
    const few = await costsOf(bench, coupled)
    const result = Buffer.alloc(BYTES_OF_RECORD)
    await fillRecords(server.pool, { rows: RECORDS.postgres, result, expiresIn: '1 day' })
    await server.pool.query('vacuum analyze service_auth.idempotency')
    const many = await costsOf(bench, coupled)
    return [
      rowOf(label, few[label], few[label]),
      rowOf('the same beside 1 million records', many[label], few[label]),
    ]
  } finally {
    await server.stop()
  }
}
