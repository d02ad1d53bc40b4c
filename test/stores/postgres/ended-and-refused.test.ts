import { expect, it } from 'vitest'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger, openCoupled, writeEffect } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

it('a statement that failed, and an answer with 500: the retry runs', async () => {
  const answers = [500, 201]
  const receiver = await openCoupled({
    url: ledger.url,
    handler: (store) => async (request, response) => {
      await writeEffect(store, request)
      const status = answers.shift() ?? 500
      if (status === 500)
        await expect(store.transactionOf(request).query('select 1/0')).rejects.toThrow()
      response.sendStatus(status)
    },
  })
  const key = newKey()
  expect(await call(receiver.port, { key })).toMatchObject({ status: 500 })
  expect(await call(receiver.port, { key })).toMatchObject({ status: 201 })
  expect(await ledger.effects(key)).toBe(1)
})

it('a statement under way when the handler fails is rolled back with the rest: the answer waits for it', async () => {
  const key = newKey()
  const receiver = await openCoupled({
    url: ledger.url,
    handler: (store) => (request, response) => {
      store
        .transactionOf(request)
        .query(
          'with slow as (select pg_sleep(0.3)::text as slept) insert into effect (key) select $1 from slow',
          [key],
        )
        .catch(() => {})
      response.sendStatus(500)
    },
  })
  const begun = performance.now()
  expect(await call(receiver.port, { key })).toMatchObject({ status: 500 })
  expect(performance.now() - begun).toBeGreaterThan(290)
  expect(await ledger.effects(key)).toBe(0)
})
