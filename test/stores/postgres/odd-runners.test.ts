import { setTimeout as delay } from 'node:timers/promises'
import express from 'express'
import {
  fromPg,
  postgresStore,
  type TransactionLimits,
  type TransactionRunner,
} from 'express-service-auth/postgres'
import { Pool, type PoolClient } from 'pg'
import { expect, it } from 'vitest'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { createLedger } from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { openOrders } from '../../support/receiver/order-receiver.js'

const postgres = await sharedPostgres()
const ledger = await createLedger(postgres)

type Runner = TransactionRunner<PoolClient>
type Work<R> = (tx: PoolClient) => Promise<R>

const never = (): Promise<never> => new Promise(() => {})
const fail = (): never => {
  throw new Error('at once')
}
const changed = (change: (real: Runner) => Partial<Runner>) => change

const CASES: [string, (real: Runner) => Partial<Runner>, number][] = [
  ['query never settles', changed(() => ({ query: never })), 503],
  ['transaction never settles', changed(() => ({ transaction: never })), 503],
  ['transaction throws', changed(() => ({ transaction: fail })), 503],
  [
    'transaction resolves before its work',
    changed((real) => ({
      transaction<R>(work: Work<R>, limits: TransactionLimits) {
        real.transaction(work, limits).catch(() => {})
        return delay(60) as Promise<R>
      },
    })),
    500,
  ],
  [
    'transaction takes a failure for a success',
    changed((real) => ({
      transaction: <R>(work: Work<R>, limits: TransactionLimits) =>
        real.transaction(work, limits).catch(() => undefined as R),
    })),
    500,
  ],
  [
    'work is called twice at once',
    changed((real) => ({
      transaction: <R>(work: Work<R>, limits: TransactionLimits) =>
        real.transaction(async (tx) => {
          const [first] = await Promise.allSettled([work(tx), work(tx)])
          if (first.status === 'rejected') throw first.reason
          return first.value
        }, limits),
    })),
    422,
  ],
]

it.concurrent.each(CASES)('a runner whose %s', async (what, change, status) => {
  const pool = new Pool({ connectionString: ledger.url })
  const real = fromPg(pool)
  const store = postgresStore(
    { ...real, ...change(real) },
    { sweepSeconds: false, transactionMs: 1000, acquireMs: 800, resolveMs: 300 },
  )
  // A refusal where the writes must be gone, else a success.
  const isRefusal = what.includes('failure') || what.includes('twice')
  let handled = 0
  const receiver = await openOrders({
    express,
    store,
    handler: async (_request, response) => {
      handled += 1
      await delay(what.includes('before') ? 400 : 50)
      response.sendStatus(isRefusal ? 422 : 201)
    },
  })
  const answered = call(receiver.port, { key: newKey() })
  const answer = await Promise.race([answered, delay(4500, 'none')])
  expect(answer).toMatchObject({ status })
  expect(handled).toBeLessThan(2)
  await receiver.close()
  store.close()
  await Promise.race([pool.end(), delay(100)])
})
