import type { RequestHandler } from 'express'
import { requireSingleUse } from 'express-service-auth'
import { Client } from 'pg'
import { expect, it } from 'vitest'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger, openCoupled, writeEffect } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)
const tokens = async (): Promise<number> =>
  (await ledger.query('select from service_auth.used_token')).length

it('a serialization failure over other rows is not a used token', async () => {
  await ledger.query('create table one (n int)')
  await ledger.query('create table two (n int)')
  await ledger.query('insert into one values (0)')
  await ledger.query('insert into two values (0)')
  const other = new Client({ connectionString: ledger.url })
  await other.connect()
  const lose: RequestHandler = async (request, _response, next) => {
    const tx = receiver.store.transactionOf(request)
    await other.query('begin isolation level serializable')
    await other.query('select * from two')
    await tx.query('select * from one')
    await tx.query('update two set n = 1')
    await other.query('update one set n = 1')
    await other.query('commit')
    next()
  }
  const receiver = await openCoupled({
    url: ledger.url,
    store: { isolation: 'serializable' },
    more: (store) => ({ inner: [lose, requireSingleUse({ store, within: 'transaction' })] }),
    handler: () => (_request, response) => void response.sendStatus(201),
  })
  expect(await call(receiver.port, { key: newKey() })).toMatchObject({ status: 503 })
  await other.end()
})

it('a COMMIT is lost, and another run with the same answer is there: its token stays used', async () => {
  let isLost = false
  const receiver = await openCoupled({
    url: ledger.url,
    runner: (onPg) => ({
      ...onPg,
      transaction: (work, limits) =>
        onPg.transaction(async (tx) => {
          const result = await work(tx)
          if (!isLost) return result
          await tx.query('rollback')
          await ledger.query('insert into service_auth.idempotency select * from saved')
          throw new Error('the connection was lost')
        }, limits),
    }),
    more: (store) => ({ inner: [requireSingleUse({ store, within: 'transaction' })] }),
    handler: (store) => async (request, response) => {
      await writeEffect(store, request)
      response.status(201).json({ order: 1 })
    },
  })
  const key = newKey()
  await call(receiver.port, { key })
  await ledger.query('create table saved as select * from service_auth.idempotency')
  await ledger.query('delete from service_auth.idempotency')
  const before = await tokens()
  isLost = true
  expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
  expect(await ledger.effects(key)).toBe(1)
  expect(await tokens()).toBe(before + 1)
})
