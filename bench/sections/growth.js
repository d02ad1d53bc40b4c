import { Redis } from 'ioredis'
import { importEntry } from '../apps/handlers.js'
import { cheapest, measure } from '../measure.js'
import { startDatabase } from './postgres.js'

const REMEMBERED = 100_000
/** Long enough to send each of them once. */
const FILL_MS = 16_000
const DENIED = 10_000
const DENYLIST = { prefix: 'full:' }
const RECORDS = { redis: 10_000_000, postgres: 1_000_000 }
const BYTES_OF_RECORD = 200
const MAX_RATIO = 1.15

const read = (pool, settings) => ({
  app: 'ours/read',
  settings,
  request: { kind: 'read', pool, status: 200 },
})
const write = (app, settings) => ({
  app,
  settings,
  request: { kind: 'write', pool: 'few', status: 201 },
})

/** What a request costs where there is much of something, over the same request where there is little. */
export async function growth(bench) {
  await growthOfReads(bench)
  await growthOnRedis(bench)
  await growthOnPostgres(bench)
}

async function growthOfReads(bench) {
  // Two characters each: the token stays below 8 KiB.
  const others = Array.from({ length: 999 }, (_, index) => (index + 36).toString(36))
  const permissions = [...others, 'orders:read']
  bench.load.pools.permissions = await bench.issuer.mint(1, () => ({ permissions }))
  bench.load.pools.remembered = await bench.issuer.mint(REMEMBERED)
  await deny(bench)
  const contenders = {
    'few of all': read('few'),
    '10 callers': read('few', { callers: callersOf(10) }),
    '100 callers': read('few', { callers: callersOf(100) }),
    '10,000 denied': { ...read('few', DENYLIST), app: 'ours/denylistRead' },
    '1,000 permissions in a token': read('permissions', { callers: ['billing'] }),
    '100,000 distinct tokens': {
      ...read('remembered', { tokenCache: { max: REMEMBERED } }),
      warmUpMs: FILL_MS,
    },
  }
  const [few, ...many] = await measure(bench, Object.values(contenders))
  for (const [index, label] of Object.keys(contenders).slice(1).entries()) {
    addRow(bench, `read, ${label}`, cheapest(many[index]), cheapest(few))
  }
}

function addRow({ table }, label, many, few) {
  table.add({
    figure: `${label}, over few`,
    ours: many,
    other: few,
    ratio: many / few,
    goal: MAX_RATIO,
    isCost: true,
  })
}

/** Callers, keys and tokens of the issuer, none of which a request has. */
async function deny({ settings }) {
  const { redisDenylist } = await importEntry(settings.build, './redis')
  const client = new Redis(settings.redisUrl, { lazyConnect: true })
  const list = redisDenylist(client, DENYLIST)
  const entries = Array.from({ length: DENIED }, (_, index) => ({
    issuer: settings.issuer,
    kind: ['caller', 'key', 'token'][index % 3],
    value: crypto.randomUUID(),
    reason: 'benchmark',
    by: 'benchmark',
    at: Math.floor(Date.now() / 1000),
    until: null,
  }))
  while (entries.length > 0) await list.deny(entries.splice(0, 1000))
  await list.close()
  client.disconnect()
}

const callersOf = (count) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [
      index === count - 1 ? 'billing' : `caller-${index}`,
      ['orders:read', 'orders:write'],
    ]),
  )

async function growthOnRedis(bench) {
  const { redis } = bench
  await redis.command('FLUSHALL')
  const contender = write('ours/idempotentWrite')
  const few = await costOf(bench, contender)
  // It takes longer than the client of the tests waits.
  const client = new Redis(redis.url)
  await client.call('debug', 'populate', RECORDS.redis, 'esa', BYTES_OF_RECORD)
  const many = await costOf(bench, contender)
  await client.flushall()
  client.disconnect()
  addRow(bench, 'idempotent write, 10,000,000 records in Redis', many, few)
}

async function growthOnPostgres(bench) {
  const server = await startDatabase(bench)
  try {
    const contender = write('postgres/onPg', { postgresUrl: server.url })
    const few = await costOf(bench, contender)
    await server.query(
      `insert into service_auth.idempotency
        select gen_random_uuid(), decode(md5(n::text), 'hex'), $1, n::text::xid8,
          now() + interval '1 day' + n * interval '1 ms'
        from generate_series(1, ${RECORDS.postgres}) n`,
      [Buffer.alloc(BYTES_OF_RECORD)],
    )
    await server.query('vacuum analyze service_auth.idempotency')
    const many = await costOf(bench, contender)
    addRow(bench, 'coupled write, 1,000,000 records in Postgres', many, few)
  } finally {
    await server.stop()
  }
}

const costOf = async (bench, contender) => cheapest((await measure(bench, [contender]))[0])
