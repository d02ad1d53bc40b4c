/* The same write on two libraries: with a key by hand, and with the store, in one transaction. */
import { createHash } from 'node:crypto'
import { Pool } from 'pg'
import { importEntry, orderOf } from './handlers.js'
import { write } from './ours.js'

const CONNECTIONS = 16
const INSERT = 'insert into orders (item, quantity) values ($1, $2)'
const TAKE_KEY =
  'insert into taken_keys (key, hash) values ($1, $2) on conflict do nothing returning 1'
const KEEP_ANSWER = 'update taken_keys set status = $2, answer = $3 where key = $1'
const FIND_ANSWER = 'select hash, status, answer from taken_keys where key = $1'

/** What all apps here need. */
export const TABLES = `
  create table orders (id bigserial primary key, item text not null, quantity integer not null);
  create table taken_keys (key text primary key, hash text not null, status integer, answer text)`

const openPool = ({ postgresUrl }) => new Pool({ connectionString: postgresUrl, max: CONNECTIONS })

/**
 * The key, the write and the answer in one transaction on pg, as one writes it by hand: an equal request waits for the
 * first, and gets its answer.
 */
export async function byHand(settings) {
  const pool = openPool(settings)

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

  const firstRun = (key, hash, order) =>
    transact(async (client) => {
      const { rowCount } = await client.query(TAKE_KEY, [key, hash])
      if (rowCount === 0) return undefined
      await client.query(INSERT, [order.item, order.quantity])
      const answer = JSON.stringify(order)
      await client.query(KEEP_ANSWER, [key, 201, answer])
      return { hash, status: 201, answer }
    })

  return write(settings, async (req, res) => {
    const key = req.headers['idempotency-key']
    const hash = createHash('sha256').update(JSON.stringify(req.body)).digest('hex')
    const kept =
      (await firstRun(key, hash, orderOf(req.body))) ??
      (await pool.query(FIND_ANSWER, [key])).rows[0]
    if (kept.hash === hash) res.status(kept.status).type('json').send(kept.answer)
    else res.sendStatus(422)
  })
}

/** The same insert in the transaction of the store. */
async function coupled(settings, { runner, insert }) {
  const { requireIdempotencyKey } = await importEntry(settings.build)
  const { postgresStore } = await importEntry(settings.build, './postgres')
  const store = postgresStore(runner, { sweepSeconds: false })
  return write(settings, requireIdempotencyKey({ store }), async (req, res) => {
    const order = orderOf(req.body)
    await insert(store.transactionOf(req), order)
    res.status(201).json(order)
  })
}

export async function onPg(settings) {
  const { fromPg } = await importEntry(settings.build, './postgres')
  const insert = (client, { item, quantity }) => client.query(INSERT, [item, quantity])
  return coupled(settings, { runner: fromPg(openPool(settings)), insert })
}

export async function onPostgresJs(settings) {
  const { default: postgres } = await import('postgres')
  const { fromPostgresJs } = await importEntry(settings.build, './postgres')
  const sql = postgres(settings.postgresUrl, { max: CONNECTIONS, fetch_types: false })
  const insert = (tx, { item, quantity }) =>
    tx`insert into orders (item, quantity) values (${item}, ${quantity})`
  return coupled(settings, { runner: fromPostgresJs(sql), insert })
}
