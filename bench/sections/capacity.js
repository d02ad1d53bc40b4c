import { readdirSync, readFileSync } from 'node:fs'
import { importEntry } from '../build.js'
import { startApp } from '../measure.js'
import { startPostgres } from '../postgres.js'
import { printTable } from '../table.js'

const TURN_MS = 4000
/** What a process can be planned to be busy: the rest is for peaks and for others. */
const LOAD = 0.6
const TICK_US = 10_000
const DAY_SECONDS = 86_400
const RATES = [10_000, 100_000, 1_000_000]

/** What a core serves, and how many of them, of Redis and of Postgres that writes need. */
export async function capacity(bench) {
  const read = await costOf(bench, { app: 'read', kind: 'read', pool: 'few', status: 200 })
  const fresh = await costOf(bench, { app: 'read', kind: 'read', pool: 'fresh', status: 200 })
  const redis = await writeOnRedis(bench)
  const postgres = await writeOnPostgres(bench)
  const perSecond = (us) => Math.round((1e6 / us) * LOAD)
  printTable(
    ['a request', 'µs of the receiver', 'µs of its store', 'a second, receiver', 'a second, store'],
    [
      ['read, known token', read.us.toFixed(0), '', perSecond(read.us), ''],
      ['read, new token', fresh.us.toFixed(0), '', perSecond(fresh.us), ''],
      ...[redis, postgres].map(({ label, us, storeUs }) => [
        label,
        us.toFixed(0),
        storeUs.toFixed(0),
        perSecond(us),
        perSecond(storeUs),
      ]),
    ],
  )
  printTable(
    [
      'writes a second',
      'cores of receivers',
      'masters of Redis',
      'GB a day',
      'cores of Postgres',
      'GB a day',
    ],
    RATES.map((rate) => {
      const cores = ({ us }) => Math.ceil((rate * us) / 1e6 / LOAD)
      const gigabytes = ({ bytes }) => Math.round((rate * DAY_SECONDS * bytes) / 1e9)
      const [ofRedis, ofPostgres] = [redis, postgres].map((store) => [
        cores({ us: store.storeUs }),
        gigabytes(store),
      ])
      return [rate.toLocaleString('en'), cores(redis), ...ofRedis, ...ofPostgres]
    }),
  )
}

/** Processor time of the server, and by `spentBy` of others, for a request. */
async function costOf(bench, { app, settings, kind, pool, status }, spentBy = async () => 0) {
  const { node, port } = await startApp(bench, { app, settings })
  const requests = [{ kind, pool, status }]
  const load = async () => {
    const { counts, fault } = await bench.load.ask({
      turn: { port, requests, durationMs: TURN_MS },
    })
    if (fault !== undefined) throw new Error(fault)
    return counts[0]
  }
  try {
    await load()
    const start = { own: await node.ask({}), others: await spentBy() }
    const count = await load()
    const own = (await node.ask({})).cpuMicroseconds - start.own.cpuMicroseconds
    return { us: own / count, storeUs: ((await spentBy()) - start.others) / count }
  } finally {
    await node.stop()
  }
}

const write = (app, settings) => ({ app, settings, kind: 'write', pool: 'few', status: 201 })

async function writeOnRedis(bench) {
  const { client } = bench.redis
  await client.flushall()
  const number = async (section, name) =>
    Number(new RegExp(`${name}:([\\d.]+)`).exec(await client.info(section))[1])
  const spent = async () =>
    1e6 * ((await number('cpu', 'used_cpu_user')) + (await number('cpu', 'used_cpu_sys')))
  const before = await number('memory', 'used_memory')
  const cost = await costOf(bench, write('idempotentWrite'), spent)
  const bytes = ((await number('memory', 'used_memory')) - before) / (await client.dbsize())
  await client.flushall()
  return { label: 'idempotent write, Redis', ...cost, bytes }
}

async function writeOnPostgres(bench) {
  const server = await startPostgres()
  const { pool, url } = server
  try {
    const { migration } = await importEntry(bench.settings.build, './postgres')
    await pool.query(migration())
    await pool.query(
      'create table orders (id bigserial primary key, item text not null, quantity integer not null)',
    )
    const { rows } = await pool.query(`select pg_read_file('postmaster.pid') as lines`)
    const postmaster = rows[0].lines.split('\n')[0]
    const cost = await costOf(bench, write('coupled', { postgresUrl: url, library: 'pg' }), () =>
      ticksBelow(postmaster),
    )
    const size = await pool.query(
      `select pg_total_relation_size('service_auth.idempotency') / count(*) as bytes
        from service_auth.idempotency`,
    )
    return { label: 'coupled write, Postgres', ...cost, bytes: Number(size.rows[0].bytes) }
  } finally {
    await server.stop()
  }
}

/** Microseconds that the children of a process have used. Linux only. */
function ticksBelow(parent) {
  const stats = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1).split(' ')
      } catch {
        return []
      }
    })
  const ofChildren = stats.filter(([, ppid]) => ppid === parent)
  return ofChildren.reduce((sum, fields) => sum + TICK_US * (+fields[11] + +fields[12]), 0)
}
