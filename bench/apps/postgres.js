/* The same write on each library: in a transaction of its own, with a key by hand, and in that of the store. */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { importEntry } from '../build.js'
import { orderOf } from './handlers.js'
import { storeOf, write } from './ours.js'

const CONNECTIONS = 16
const INSERT = 'insert into orders (item, quantity) values ($1, $2)'

const postgresOf = ({ build }) => importEntry(build, './postgres')

/** What each library makes of a write: alone, and in the transaction of a request. */
const LIBRARIES = {
  pg: onPg,
  postgresJs: onPostgresJs,
  kysely: onKysely,
  drizzle: onDrizzle,
  typeOrm: onTypeOrm,
  prisma: onPrisma,
}

/** The handler in its own `begin`, `insert` and `commit`. */
export async function bare(settings) {
  const { transact, insert } = await LIBRARIES[settings.library](settings)
  return write(
    settings,
    answering((order) => transact((tx) => insert(tx, order))),
  )
}

const TAKE_KEY =
  'insert into taken_keys (key, hash) values ($1, $2) on conflict do nothing returning 1'
const KEEP_ANSWER = 'update taken_keys set status = $2, answer = $3 where key = $1'
const FIND_ANSWER = 'select hash, status, answer from taken_keys where key = $1'

/** The table of `byHand`. */
export const KEYS_TABLE =
  'create table taken_keys (key text primary key, hash text not null, status integer, answer text)'

/**
 * The key, the write and the answer in one transaction, as one writes it by hand: an equal request waits for
 * the first, and gets its answer.
 */
export async function byHand(settings) {
  const { transact, insert, query } = await LIBRARIES[settings.library](settings)
  const firstRun = (key, hash, order) =>
    transact(async (tx) => {
      const taken = await query(tx, TAKE_KEY, [key, hash])
      if (taken.length === 0) return undefined
      await insert(tx, order)
      const answer = JSON.stringify(order)
      await query(tx, KEEP_ANSWER, [key, 201, answer])
      return answer
    })

  return write(settings, async (req, res) => {
    const key = req.headers['idempotency-key']
    const hash = createHash('sha256').update(JSON.stringify(req.body)).digest('hex')
    let status = 201
    let answer = await firstRun(key, hash, orderOf(req.body))
    if (answer === undefined) {
      const [kept] = await transact((tx) => query(tx, FIND_ANSWER, [key]))
      if (kept.hash !== hash) {
        res.sendStatus(422)
        return
      }
      ;({ status, answer } = kept)
    }
    res.status(status).type('json').send(answer)
  })
}

/** A retry by hand: one `select` outside a transaction, and the write where it finds none. */
export async function replayByHand(settings) {
  const pool = poolOf(settings)
  return write(settings, async (req, res) => {
    const key = req.headers['idempotency-key']
    const hash = createHash('sha256').update(JSON.stringify(req.body)).digest('hex')
    let {
      rows: [kept],
    } = await pool.query(FIND_ANSWER, [key])
    if (kept === undefined) {
      kept = { hash, status: 201, answer: JSON.stringify(orderOf(req.body)) }
      await pool.query('insert into taken_keys values ($1, $2, $3, $4) on conflict do nothing', [
        key,
        ...Object.values(kept),
      ])
    }
    if (kept.hash === hash) res.status(kept.status).type('json').send(kept.answer)
    else res.sendStatus(422)
  })
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
  const { transact, insert } = await onPg(settings)
  const guard = requireIdempotencyKey({ store: await storeOf(settings) })
  const handler = answering((order) => transact((tx) => insert(tx, order)))
  return write(settings, guard, handler)
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
  const query = async (client, text, values) => (await client.query(text, values)).rows
  const insert = (client, { item, quantity }) => client.query(INSERT, [item, quantity])

  async function transact(work) {
    const client = await pool.connect()
    try {
      await client.query('begin')
      const result = await work(client)
      await client.query('commit')
      return result
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  }
  return { runner: fromPg(pool), insert, query, transact }
}

async function onPostgresJs(settings) {
  const { default: postgres } = await import('postgres')
  const { fromPostgresJs } = await postgresOf(settings)
  const sql = postgres(settings.postgresUrl, { max: CONNECTIONS, fetch_types: false })
  const query = (tx, text, values) => tx.unsafe(text, values, { prepare: true })
  const insert = (tx, { item, quantity }) =>
    tx`insert into orders (item, quantity) values (${item}, ${quantity})`
  return { runner: fromPostgresJs(sql), insert, query, transact: (work) => sql.begin(work) }
}

async function onKysely(settings) {
  const { CompiledQuery, Kysely, PostgresDialect } = await import('kysely')
  const { fromKysely } = await postgresOf(settings)
  const db = new Kysely({ dialect: new PostgresDialect({ pool: poolOf(settings) }) })
  const insert = (tx, { item, quantity }) =>
    tx.insertInto('orders').values({ item, quantity }).execute()
  const query = async (tx, text, values) =>
    (await tx.executeQuery(CompiledQuery.raw(text, values))).rows
  const transact = (work) => db.transaction().execute(work)
  return { runner: fromKysely(db), insert, query, transact }
}

async function onDrizzle(settings) {
  const { drizzle } = await import('drizzle-orm/node-postgres')
  const { sql } = await import('drizzle-orm')
  const { integer, pgTable, text } = await import('drizzle-orm/pg-core')
  const { fromDrizzle } = await postgresOf(settings)
  const orders = pgTable('orders', { item: text().notNull(), quantity: integer().notNull() })
  const db = drizzle({ client: poolOf(settings) })
  const insert = (tx, { item, quantity }) => tx.insert(orders).values({ item, quantity })
  // Every other part is the number of a value.
  const toSql = (text, values) =>
    sql.join(
      text.split(/\$(\d)/).map((part, at) => (at % 2 ? sql`${values[part - 1]}` : sql.raw(part))),
    )
  const query = async (tx, text, values) => (await tx.execute(toSql(text, values))).rows
  return { runner: fromDrizzle(db, sql), insert, query, transact: (work) => db.transaction(work) }
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
  const query = (tx, text, values) => tx.query(text, values)
  return {
    runner: fromTypeOrm(source),
    insert,
    query,
    transact: (work) => source.transaction(work),
  }
}

async function onPrisma(settings) {
  const { fromPrisma } = await postgresOf(settings)
  const { openPrisma } = await import('./prisma.js')
  const prisma = await openPrisma(settings.postgresUrl, CONNECTIONS)
  const insert = (tx, { item, quantity }) => tx.$executeRawUnsafe(INSERT, item, quantity)
  const query = (tx, text, values) => tx.$queryRawUnsafe(text, ...values)
  const transact = (work) => prisma.$transaction(work)
  return { runner: fromPrisma(prisma), insert, query, transact }
}
