/* The same write on each library, in a transaction of its own and in that of the store. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { importEntry } from '../build.js'
import { orderOf } from './handlers.js'
import { storeOf, write } from './ours.js'

const CONNECTIONS = 16
const INSERT = 'insert into orders (item, quantity) values ($1, $2)'

const postgresOf = ({ build }) => importEntry(build, './postgres')

/** What each library makes of a write: alone, and in the transaction of a request. */
const LIBRARIES = { pg: onPg, kysely: onKysely, typeOrm: onTypeOrm, prisma: onPrisma }

/** The handler in its own `begin`, `insert` and `commit`. */
export async function bare(settings) {
  const { transact } = await LIBRARIES[settings.library](settings)
  return write(settings, answering(transact))
}

/** The same handler on the same pool, coupled. */
export async function coupled(settings) {
  const { requireIdempotencyKey } = await importEntry(settings.build)
  const { runner, insert } = await LIBRARIES[settings.library](settings)
  const { postgresStore } = await postgresOf(settings)
  const store = postgresStore(runner, { sweepSeconds: false })
  const handler = answering(async (order, req) => {
    await hang(store, req, 'idle')
    await insert(store.transactionOf(req), order)
    await hang(store, req, 'statement')
  })
  return write(settings, requireIdempotencyKey({ store }), handler)
}

/** The handler's own transaction behind a store on Redis. */
export async function leased(settings) {
  const { requireIdempotencyKey } = await importEntry(settings.build)
  const { transact } = await onPg(settings)
  const guard = requireIdempotencyKey({ store: await storeOf(settings) })
  return write(settings, guard, answering(transact))
}

export async function usedToken(settings) {
  const { requireSingleUse } = await importEntry(settings.build)
  const { fromPg, postgresStore } = await postgresOf(settings)
  const store = postgresStore(fromPg(poolOf(settings)), { sweepSeconds: false })
  return write(
    settings,
    requireSingleUse({ store }),
    answering(async () => {}),
  )
}

const answering = (work) => async (req, res) => {
  const order = orderOf(req.body)
  await work(order, req)
  res.status(201).json(order)
}

const HANG_MS = 2000

/** Waits where the caller asks for it. */
async function hang(store, req, where) {
  if (req.headers['x-hang'] !== where) return
  process.send({ isHanging: true })
  if (where === 'idle') await sleep(HANG_MS)
  else await store.transactionOf(req).query(`select pg_sleep(${HANG_MS / 1000})`)
}

const poolOf = ({ postgresUrl: connectionString }) =>
  new Pool({ connectionString, max: CONNECTIONS })

async function onPg(settings) {
  const { fromPg } = await postgresOf(settings)
  const pool = poolOf(settings)
  const insert = (client, { item, quantity }) => client.query(INSERT, [item, quantity])

  async function transact(order) {
    const client = await pool.connect()
    try {
      await client.query('begin')
      await insert(client, order)
      await client.query('commit')
    } finally {
      client.release()
    }
  }
  return { runner: fromPg(pool), insert, transact }
}

async function onKysely(settings) {
  const { Kysely, PostgresDialect } = await import('kysely')
  const { fromKysely } = await postgresOf(settings)
  const db = new Kysely({ dialect: new PostgresDialect({ pool: poolOf(settings) }) })
  const insert = (tx, { item, quantity }) =>
    tx.insertInto('orders').values({ item, quantity }).execute()
  const transact = (order) => db.transaction().execute((tx) => insert(tx, order))
  return { runner: fromKysely(db), insert, transact }
}

async function onTypeOrm(settings) {
  const { DataSource } = await import('typeorm')
  const { fromTypeOrm } = await postgresOf(settings)
  const source = new DataSource({
    type: 'postgres',
    url: settings.postgresUrl,
    poolSize: CONNECTIONS,
    installExtensions: false,
  })
  await source.initialize()
  const insert = (tx, { item, quantity }) => tx.query(INSERT, [item, quantity])
  const transact = (order) => source.transaction((tx) => insert(tx, order))
  return { runner: fromTypeOrm(source), insert, transact }
}

async function onPrisma(settings) {
  const { fromPrisma } = await postgresOf(settings)
  const { openPrisma } = await import('./prisma.js')
  const prisma = await openPrisma(settings.postgresUrl, CONNECTIONS)
  const insert = (tx, { item, quantity }) => tx.$executeRawUnsafe(INSERT, item, quantity)
  const transact = (order) => prisma.$transaction((tx) => insert(tx, order))
  return { runner: fromPrisma(prisma), insert, transact }
}
