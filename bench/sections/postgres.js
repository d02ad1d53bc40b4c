import { startPostgres } from '../postgres.js'
import { SERVER_CORE, startNode } from '../processes.js'
import { compareThroughput } from '../throughput.js'
import { postgresCost } from './postgres-cost.js'
import { postgresFaults } from './postgres-faults.js'
import { postgresSweep } from './postgres-sweep.js'

const AT_ONCE = 16
/** Added to every reply: two milliseconds for a round trip. */
const DELAY_MS = 2

/** Those whose adapters send one statement at a time. */
const OTHERS = { kysely: 'kysely', typeOrm: 'TypeORM', prisma: 'Prisma' }

/** Writes whose record commits with them in Postgres, beside the same writes without a record. */
export async function postgres(bench) {
  const server = await startPostgres()
  const slow = startWire(server.port, DELAY_MS)
  try {
    const { migration } = await import(new URL('stores/postgres/index.js', bench.settings.dist))
    await server.pool.query(migration())
    await server.pool.query(
      'create table orders (id bigserial primary key, item text not null, quantity integer not null)',
    )
    const place = { ...bench, postgres: server }
    const { port } = await slow.answer()
    await manyAtOnce(place)
    await oneAtATime(place, server.url.replace(`:${server.port}/`, `:${port}/`))
    await postgresCost(place)
    await postgresSweep(place)
    await postgresFaults(place)
  } finally {
    await slow.stop()
    await server.stop()
  }
}

/** A wire to Postgres, whose first message is its port. */
export const startWire = (port, delayMs) =>
  startNode(
    SERVER_CORE,
    new URL('../wire.js', import.meta.url).pathname,
    [port, delayMs].map(String),
  )

async function manyAtOnce(bench) {
  const settings = { postgresUrl: bench.postgres.url, library: 'pg' }
  await compareThroughput(bench, {
    title: `writes, ${AT_ONCE} at once`,
    connections: AT_ONCE,
    contenders: [
      { label: 'bare transaction', app: 'bare', settings },
      { label: 'coupled', app: 'coupled', settings, to: 'bare transaction', aim: 0.7 },
      { label: 'Redis store + bare transaction', app: 'leased', settings },
      {
        label: 'coupled (the same)',
        app: 'coupled',
        settings,
        to: 'Redis store + bare transaction',
        aim: 0.95,
      },
      { label: 'replay', app: 'coupled', kind: 'replay', settings, to: 'bare transaction', aim: 1 },
      ...otherLibraries(bench.postgres.url),
    ],
  })
}

async function oneAtATime(bench, postgresUrl) {
  const settings = { postgresUrl, library: 'pg' }
  await compareThroughput(bench, {
    title: `writes, one at a time, ${DELAY_MS} ms a round trip`,
    connections: 1,
    turnMs: 500,
    contenders: [
      { label: 'bare transaction', app: 'bare', settings },
      { label: 'coupled', app: 'coupled', settings, to: 'bare transaction', aim: 0.9 },
      ...otherLibraries(postgresUrl, 0.55),
    ],
  })
}

const otherLibraries = (postgresUrl, aim) =>
  Object.entries(OTHERS).flatMap(([library, name]) => {
    const settings = { postgresUrl, library }
    return [
      { label: `bare, ${name}`, app: 'bare', settings },
      { label: `coupled, ${name}`, app: 'coupled', settings, to: `bare, ${name}`, aim },
    ]
  })
