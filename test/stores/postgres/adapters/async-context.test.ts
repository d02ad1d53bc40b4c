import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { postgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import type { TransactionRunner } from '../../../../src/stores/postgres/runner.js'
import { sharedPostgres } from '../../../support/postgres/postgres-database.js'
import { createLedger } from '../../../support/receiver/coupled-receiver.js'
import { PG } from './libraries.js'

const ledger = await createLedger(await sharedPostgres())

/** As a pool that calls from the context of whoever has freed the connection. */
function callingFromElsewhere(runner: TransactionRunner<unknown>): TransactionRunner<unknown> {
  const elsewhere = new AsyncResource('elsewhere')
  return {
    ...runner,
    transaction: (work, limits) =>
      runner.transaction((tx) => elsewhere.runInAsyncScope(work, undefined, tx), limits),
  }
}

it('a handler runs in the async context of its request, whoever has freed the connection', async () => {
  const opened = await PG.open(ledger.url, 1)
  const runner = callingFromElsewhere(opened.runner)
  const store = postgresStore(runner, { acquireMs: 10_000, sweepSeconds: false })
  const context = new AsyncLocalStorage<number>()
  const seen: (number | undefined)[] = []
  const runs = [0, 1, 2, 3, 4].map((request) =>
    context.run(request, async () => {
      const key = { recordId: randomUUID(), fingerprint: 'f', hasKey: true }
      const asked = { ...key, retentionMs: 1000, requester: {} }
      const outcome = await store.run(asked, async () => {
        seen[request] = context.getStore()
        return { type: 'answered', status: 200, result: undefined }
      })
      return [outcome.outcome, context.getStore()]
    }),
  )
  expect(await Promise.all(runs)).toEqual([0, 1, 2, 3, 4].map((request) => ['answered', request]))
  expect(seen).toEqual([0, 1, 2, 3, 4])
  store.close()
  await opened.close()
})
