import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import { SYSTEM_TIMING } from '../../../src/migration/run/timing.js'
import { type StandInCore, startStandInCore } from '../../support/stand-in-core.js'
import { memoryJournal } from './support/memory-journal.js'
import { people, sourceOf } from './support/people.js'

const quick = {
  ...SYSTEM_TIMING,
  sleep: (ms: number, signal: AbortSignal) => SYSTEM_TIMING.sleep(Math.min(ms, 5), signal),
}

describe('a run', () => {
  let standIn: StandInCore
  beforeAll(async () => {
    standIn = await startStandInCore()
  }, 60_000)
  afterAll(() => standIn.close())

  it('takes a faultless source to complete', async () => {
    const journal = memoryJournal()
    const core = coreClient({ baseUrl: standIn.url, apiKey: standIn.apiKey })
    const events: unknown[] = []
    const migration = await openMigrationWith(
      {
        core,
        source: sourceOf(people(30)),
        journal,
        batchUsers: 7,
        onProgress: (event) => {
          events.push(event.type)
          return event.type === 'waiting' ? standIn.runJob() : undefined
        },
      },
      quick,
    )
    const report = await migration.run()
    await migration.close()
    expect(report.state).toBe('complete')
  })
})
