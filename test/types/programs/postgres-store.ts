// Writes whose record commits with them, with an own runner of transactions.
import express from 'express'
import {
  type CoupledStore,
  encryptedStore,
  type IdempotencyStore,
  memoryStore,
  requireIdempotencyKey,
} from 'express-service-auth'
import {
  migration,
  type PostgresStore,
  postgresStore,
  type TransactionRunner,
} from 'express-service-auth/postgres'
import { transactionRunnerCases } from 'express-service-auth/testing'

interface OwnTransaction {
  insert(row: object): Promise<void>
}
declare const runner: TransactionRunner<OwnTransaction>

const store: PostgresStore<OwnTransaction> = postgresStore(runner, {
  schema: 'orders_auth',
  transactionMs: 10_000,
  sweepSeconds: false,
  isolation: 'repeatable read',
})

const app = express()
app.post(
  '/orders',
  requireIdempotencyKey({ store, singleUse: true, retentionSeconds: 3600, maxResponseBytes: 1024 }),
  async (req, res) => {
    await store.transactionOf(req).insert({ id: store.effectId(req, 'order') })
    store.keepWrites(req)
    res.sendStatus(201)
  },
)

export const warnings: Promise<readonly string[]> = store.check()
export const swept: Promise<number> = store.sweep({ batch: 100 })
export const sql: string = migration({ schema: 'orders_auth', appRole: 'app' })
export const cases = transactionRunnerCases(() => runner).map(({ name }) => name)

const encrypted = encryptedStore(store, { keys: { a: new Uint8Array(32) }, current: 'a' })
requireIdempotencyKey({ store: encrypted })
encrypted.transactionOf(app.request) satisfies OwnTransaction

declare const own: CoupledStore
requireIdempotencyKey({ store: own })
declare const either: CoupledStore | IdempotencyStore
requireIdempotencyKey({ store: either })

// @ts-expect-error a transaction has no lease
requireIdempotencyKey({ store, leaseSeconds: 30 })
// @ts-expect-error the store bounds its transactions
requireIdempotencyKey({ store, maxRunSeconds: 30 })
// @ts-expect-error a run that ends without a result has written nothing
requireIdempotencyKey({ store, whenAbandoned: 'rerun' })
// @ts-expect-error no such isolation
postgresStore(runner, { isolation: 'read uncommitted' })
// @ts-expect-error a store of keys alone has no transaction
memoryStore().transactionOf(app.request)
// @ts-expect-error a runner is needed
postgresStore()
// @ts-expect-error an address is no runner
postgresStore('postgres://127.0.0.1/orders')
