import { setTimeout as delay } from 'node:timers/promises'
import type { ErrorRequestHandler } from 'express'
import { expect, it } from 'vitest'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger, openCoupled } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)
await ledger.query('create table once (n int unique deferrable initially deferred)')
await ledger.query('insert into once values (1)')

/** As one that reports the error before it answers. */
const slow: ErrorRequestHandler = async (_error, _request, response, _next) => {
  await delay(120)
  response.status(500).json({ failed: true })
}

it.each([
  ['ends while the app is at its answer', 5],
  ['ends after it', 40],
])('a handler that still writes when its COMMIT is refused, and %s', async (_what, parts) => {
  const receiver = await openCoupled({
    url: ledger.url,
    options: { maxResponseBytes: 100 },
    more: { finish: (app) => void app.use(slow) },
    handler: (store) => async (request, response) => {
      await store.transactionOf(request).query('insert into once values (1)')
      response.status(200).type('text')
      for (let part = 0; part < parts; part++) {
        response.write('x'.repeat(200))
        await delay(5)
      }
      response.end('the end')
    },
  })
  const answer = await call(receiver.port, { key: newKey() })
  expect(answer).toMatchObject({ status: 500, isBroken: false })
  expect(answer.body.toString()).toBe('{"failed":true}')
})

it('an app that ends an answer of which it says nothing', async () => {
  const blank: ErrorRequestHandler = (_error, _request, response, _next) => void response.end()
  const receiver = await openCoupled({
    url: ledger.url,
    more: { finish: (app) => void app.use(blank) },
    handler: (store) => async (request, response) => {
      await store.transactionOf(request).query('insert into once values (1)')
      response.status(201).json({ order: 1 })
    },
  })
  const answer = await call(receiver.port, { key: newKey() })
  expect(answer).toMatchObject({ status: 200, isBroken: false })
  expect(answer.body.byteLength).toBe(0)
})
