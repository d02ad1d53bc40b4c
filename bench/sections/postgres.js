import { KEYS_TABLE } from '../apps/postgres.js'
import { importEntry } from '../build.js'
import { startPostgres } from '../postgres.js'
import { compareThroughput } from '../throughput.js'
import { postgresCost, startWire } from './postgres-cost.js'
import { postgresFaults } from './postgres-faults.js'
import { postgresSweep } from './postgres-sweep.js'

const AT_ONCE = 16
const BARE = 'bare transaction'
const BY_HAND = 'key by hand'
const BY_ONE_SELECT = 'replay by one select'
const LEASED = 'Redis store + bare transaction'
/** Added to every reply: two milliseconds for a round trip. */
const DELAY_MS = 2

/** Those whose adapters send one statement at a time. */
const OTHERS = { kysely: 'kysely', typeOrm: 'TypeORM', prisma: 'Prisma' }

/** Writes whose record commits with them in Postgres, beside the same writes without a record. */
export async function postgres(bench) {
  const server = await startPostgres()
  const slow = await startWire(server, DELAY_MS)
  try {
    const { migration } = await importEntry(bench.settings.build, './postgres')
    await server.pool.query(migration())
    await server.pool.query(
      'create table orders (id bigserial primary key, item text not null, quantity integer not null)',
    )
    await server.pool.query(KEYS_TABLE)
    const place = { ...bench, postgres: server }
    await manyAtOnce(place)
    await keysByHand(place)
    await oneAtATime(place, slow.url)
    await postgresCost(place)
    await postgresSweep(place)
    await postgresFaults(place)
  } finally {
    await slow.node.stop()
    await server.stop()
  }
}

async function manyAtOnce(bench) {
  const settings = { postgresUrl: bench.postgres.url, library: 'pg' }
  const toBare = (aim) => ({ to: BARE, aim })
  await compareThroughput(bench, {
    title: `writes, ${AT_ONCE} at once`,
    connections: AT_ONCE,
    contenders: [
      { label: BARE, app: 'bare', settings },
      {
        label: 'coupled',
        app: 'coupled',
        settings,
        ratios: [toBare(0.7), { to: LEASED, aim: 0.95 }],
      },
      { label: LEASED, app: 'leased', settings },
      { label: 'replay', app: 'coupled', kind: 'replay', settings, ratios: [toBare(1)] },
      ...otherLibraries(bench.postgres.url),
    ],
  })
}

/** What one writes by hand: the key, the write and the answer in one transaction. */
async function keysByHand(bench) {
  const libraries = { pg: 'pg', postgresJs: 'postgres.js', drizzle: 'drizzle', ...OTHERS }
  const contenders = Object.entries(libraries).flatMap(([library, name]) => {
    const settings = { postgresUrl: bench.postgres.url, library }
    const byHand = `${BY_HAND}, ${name}`
    const [aim, costAim] = library === 'pg' ? [0.95, 0.95] : [0.85]
    const ratios = [{ to: byHand, aim, costAim }]
    return [
      { label: byHand, app: 'byHand', settings },
      { label: `coupled, ${name}`, app: 'coupled', settings, ratios },
    ]
  })
  const settings = { postgresUrl: bench.postgres.url, library: 'pg' }
  const replay = { kind: 'replay', settings }
  contenders.push(
    { ...replay, label: BY_ONE_SELECT, app: 'replayByHand' },
    { ...replay, label: 'replay', app: 'coupled', ratios: [{ to: BY_ONE_SELECT, aim: 0.85 }] },
  )
  const title = `beside a ${BY_HAND}, ${AT_ONCE} at once`
  await compareThroughput(bench, { title, connections: AT_ONCE, contenders })
}

async function oneAtATime(bench, postgresUrl) {
  const settings = { postgresUrl, library: 'pg' }
  await compareThroughput(bench, {
    title: `writes, one at a time, ${DELAY_MS} ms a round trip`,
    connections: 1,
    turnMs: 500,
    contenders: [
      { label: BARE, app: 'bare', settings },
      { label: 'coupled', app: 'coupled', settings, ratios: [{ to: BARE, aim: 0.9 }] },
      ...otherLibraries(postgresUrl, 0.55),
    ],
  })
}

const otherLibraries = (postgresUrl, aim) =>
  Object.entries(OTHERS).flatMap(([library, name]) => {
    const settings = { postgresUrl, library }
    const bare = `bare, ${name}`
    return [
      { label: bare, app: 'bare', settings },
      { label: `coupled, ${name}`, app: 'coupled', settings, ratios: [{ to: bare, aim }] },
    ]
  })
