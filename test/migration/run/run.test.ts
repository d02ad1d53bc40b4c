import { expect, it, onTestFinished } from 'vitest'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import { accountsByExternalId, startStandInCore } from '../../support/core/stand-in-core.js'
import { memoryJournal } from './support/memory-journal.js'
import { people, sourceOf } from './support/people.js'
import { QUICK_TIMING } from './support/quick-timing.js'

const USERS = 30
const TIME_LIMIT_MS = 1000

it('a run finishes, slower, where it is asked to wait for longer than a call may take', async () => {
  const core = await startStandInCore()
  onTestFinished(() => core.close())
  let asked = 0
  let refused = 0
  let refusesUntil = 0
  const limited: typeof fetch = async (input, init) => {
    if (performance.now() < refusesUntil) {
      refused += 1
      return new Response('slow down', { status: 429, headers: { 'retry-after': '60' } })
    }
    asked += 1
    // By count alone: a slow machine would never exceed a rate.
    if (asked % 25 === 0) refusesUntil = performance.now() + TIME_LIMIT_MS / 2
    return fetch(input, init)
  }
  const limits = { timeoutMs: TIME_LIMIT_MS, stageTimeoutMs: TIME_LIMIT_MS }
  const client = coreClient({ baseUrl: core.url, apiKey: core.apiKey, fetch: limited, ...limits })
  const options = { core: client, source: sourceOf(people(USERS)), journal: memoryJournal() }
  const migration = await openMigrationWith(
    {
      ...options,
      batchUsers: 7,
      onProgress: ({ type }) => (type === 'waiting' ? core.runJob() : undefined),
    },
    QUICK_TIMING,
  )
  const report = await migration.run()
  expect(report).toMatchObject({ state: 'complete', counts: { reconciled: USERS } })
  expect(refused).toBeGreaterThan(0)
  expect((await accountsByExternalId(core)).size).toBe(USERS)
})
