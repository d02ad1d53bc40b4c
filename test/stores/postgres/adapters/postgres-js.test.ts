import { sql as drizzleSql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable } from 'drizzle-orm/pg-core'
import { drizzle as drizzleOnPostgresJs } from 'drizzle-orm/postgres-js'
import { Pool } from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromDrizzle } from '../../../../src/stores/postgres/adapters/drizzle.js'
import { fromPostgresJs } from '../../../../src/stores/postgres/adapters/postgres-js.js'
import { guardTransaction, TransactionEndedError } from '../../../../src/stores/postgres/guard.js'
import { textIn } from '../../../../src/stores/postgres/runner.js'
import { type PostgresServer, startPostgres } from '../../../support/postgres/postgres.js'

const LIMITS = { acquireMs: 2000, transactionMs: 5000 }

let server: PostgresServer
let sql: ReturnType<typeof open>

const hex = (bytes: Uint8Array): string => `\\x${Buffer.from(bytes).toString('hex')}`

function open() {
  const shout = {
    to: 17,
    from: [17, 25],
    serialize: hex,
    parse: () => 'mine',
  }
  return postgres(server.url, {
    max: 1,
    onnotice: () => {},
    transform: postgres.camel,
    types: { bigint: postgres.BigInt, shout: { ...shout, to: 7777 } },
  })
}

beforeAll(async () => {
  server = await startPostgres()
  sql = open()
  await server.query('create table ledger (order_id int primary key, note bytea)')
})
afterAll(async () => {
  await sql.end({ timeout: 1 })
  await server.stop()
})

it('a drizzle on postgres.js is told the way, a second database on a pool of pg', async () => {
  const ledger = pgTable('ledger', { id: integer('order_id').primaryKey() })
  expect(() => fromDrizzle(drizzleOnPostgresJs(sql) as never, drizzleSql)).toThrow(
    /drizzle-orm\/node-postgres; one on postgres\.js needs a second database on such a pool/,
  )
  const pool = new Pool({ connectionString: server.url })
  const runner = fromDrizzle(drizzle(pool), drizzleSql)
  await runner.transaction((tx) => tx.insert(ledger).values({ id: 99 }), LIMITS)
  await pool.end()
  expect(await server.query('delete from ledger where order_id = 99 returning 1 as n')).toEqual([
    { n: 1 },
  ])
})

describe('fromPostgresJs', () => {
  it('gets rows of texts under names that a transform has changed', async () => {
    const pascal = postgres(server.url, { max: 1, transform: postgres.toPascal })
    const rows = await fromPostgresJs(pascal).query(undefined, "select 'x'::text as said", [])
    expect(textIn(rows[0] ?? {}, 'said')).toBe('x')
    await pascal.end()
  })

  it('lets a handler use fragments, helpers and cursors by its handle', async () => {
    const runner = fromPostgresJs(sql)
    await runner.transaction(async (tx) => {
      const { transaction: handle, revoke } = guardTransaction(tx)
      const orders = [1, 2, 3].map((orderId) => ({ orderId }))
      await handle`insert into ledger ${handle(orders)}`
      const bound = handle`order_id > ${1}`
      const rows = await handle`select order_id from ledger where ${bound} order by 1`
      expect(rows.map((row) => row['orderId'])).toEqual([2, 3])
      const seen: unknown[] = []
      for await (const [row] of handle`select order_id from ledger order by 1`.cursor()) {
        seen.push(row?.['orderId'])
      }
      expect(seen).toEqual([1, 2, 3])
      const unsent = handle`insert into ledger ${handle({ orderId: 9 })}`
      const cursor = handle`select 1`.cursor()[Symbol.asyncIterator]()
      await expect(handle`commit`).rejects.toThrow(/neither begins/)
      await expect(handle.prepare('x')).rejects.toThrow(/neither begins/)
      revoke()
      await expect(unsent).rejects.toThrow(TransactionEndedError)
      await expect(cursor.next()).rejects.toThrow(TransactionEndedError)
      await expect(handle.notify('a', 'b')).rejects.toThrow(TransactionEndedError)
    }, LIMITS)
    expect(await server.query('select count(*)::int as n from ledger')).toEqual([{ n: 3 }])
  })

  it('refuses a transaction', async () => {
    await sql.begin((tx) => expect(() => fromPostgresJs(tx as never)).toThrow(TypeError))
  })
})
