import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import type { TransactionRunner } from '../../../../src/stores/postgres/runner.js'
import { sharedPostgres } from '../../../support/postgres/postgres-database.js'
import { createLedger, type Ledger } from '../../../support/receiver/coupled-receiver.js'
import { ADAPTERS, type Adapter, PG } from './libraries.js'

const postgres = await sharedPostgres()
let ledger: Ledger
beforeAll(async () => {
  ledger = await createLedger(postgres)
})
afterAll(() => ledger.drop())

/** As a pool that calls from the context of whoever has freed the connection. */
function callingFromElsewhere(runner: TransactionRunner<unknown>): TransactionRunner<unknown> {
  const elsewhere = new AsyncResource('elsewhere')
  return {
    ...runner,
    transaction: (work, limits) =>
      runner.transaction((tx) => elsewhere.runInAsyncScope(work, undefined, tx), limits),
  }
}

const ELSEWHERE: Adapter = {
  name: 'a pool that calls from elsewhere',
  async open(url, max) {
    const opened = await PG.open(url, max)
    return { ...opened, runner: callingFromElsewhere(opened.runner) }
  },
}

describe.each([...ADAPTERS, ELSEWHERE])('on $name', ({ open }) => {
  it('a handler runs in the async context of its request, whoever has freed the connection', async () => {
    const opened = await open(ledger.url, 1)
    const store = postgresStore(opened.runner, { acquireMs: 10_000, sweepSeconds: false })
    const context = new AsyncLocalStorage<number>()
    const seen: (number | undefined)[] = []
    const runs = [0, 1, 2, 3, 4].map((request) =>
      context.run(request, async () => {
        const requester = {}
        const key = { recordId: randomUUID(), fingerprint: 'f', hasKey: true }
        const asked = { ...key, retentionMs: 1000, requester }
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
})
