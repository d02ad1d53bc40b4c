import { afterAll, expect, it } from 'vitest'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { importAccount } from '../../../src/migration/endpoint/import-under-key.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import { startStandInCore } from '../../support/core/stand-in-core.js'
import { memoryJournal } from './support/memory-journal.js'
import { sourceOf } from './support/people.js'
import { QUICK_TIMING } from './support/quick-timing.js'

/** With a trunk prefix, which the core removes. */
const NUMBERS = [
  '+410446681800',
  '+41 (0) 44 668 18 01',
  '+4901511234567',
  '+784957654321',
  '+5215512345678',
  '+116502530000',
]

const userOf = (phoneNumber: string): ImportUser => ({
  externalUserId: `of ${phoneNumber}`,
  loginMethods: [{ recipeId: 'passwordless', phoneNumber }],
})

const standIn = await startStandInCore()
afterAll(() => standIn.close())

const client = () => coreClient({ baseUrl: standIn.url, apiKey: standIn.apiKey })

it('users of numbers with a trunk prefix are reconciled, and known to the endpoint again', async () => {
  const migration = await openMigrationWith(
    {
      core: client(),
      source: sourceOf(NUMBERS.map(userOf)),
      journal: memoryJournal(),
      onProgress: ({ type }) => (type === 'waiting' ? standIn.runJob() : undefined),
    },
    QUICK_TIMING,
  )
  expect(await migration.run()).toMatchObject({
    state: 'complete',
    counts: { reconciled: NUMBERS.length },
  })
  await migration.close()
  for (const user of NUMBERS.map(userOf)) {
    expect(await importAccount(client(), user)).toMatchObject({
      type: 'accepted',
      reason: 'existing',
    })
  }
})

it('two spellings of one number are one login of two records', async () => {
  const core = client()
  const first = userOf('+41 44 668 18 09')
  expect(await importAccount(core, first)).toMatchObject({ reason: 'created' })
  expect(await importAccount(core, userOf('+41-(0)44-668-18-09'))).toEqual({
    ...{ ok: false, type: 'refused' },
    ...{ reason: 'account_conflict', faults: ['E007'] },
  })
})
