import { describe, expect, it } from 'vitest'
import type { CoreClient } from '../../../src/migration/core/core-client.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { person, sourceOf } from './support/people.js'
import { listOf, scene } from './support/scene.js'

/** A migration that has run while accounts of these names got the logins of users. */
async function migrate(
  holders: Readonly<Record<string, string>>,
  overrides: Partial<CoreClient> = {},
) {
  const { simulated, open, journal } = scene(overrides)
  for (const [externalUserId, user] of Object.entries(holders)) {
    simulated.importLater({ ...person(user), externalUserId } as ImportUser)
  }
  const migration = await open()
  return { simulated, journal, migration, report: await migration.run() }
}

const CONFLICT = { other: 'user-2' }
const TWO_CONFLICTS = { ...CONFLICT, other4: 'user-4' }

const badCorrections = (message: string) => ({
  code: 'bad_corrections',
  message: expect.stringContaining(message),
})

/** A correction that gives a user the login of another. */
const replace = (externalUserId: string, login: string) => ({
  replaces: externalUserId,
  user: { ...person(login), externalUserId },
})

describe('rows that have failed', () => {
  it('are told with their reason and who holds the login, without account data', async () => {
    const { simulated, journal, migration, report } = await migrate(CONFLICT)
    expect(report).toMatchObject({ state: 'to_correct', counts: { failed: 1 } })
    const [failed] = (await listOf(migration.identities())).filter(
      ({ state }) => state === 'failed',
    )
    expect(failed).toMatchObject({
      externalUserId: 'user-2',
      line: 3,
      code: 'E003',
      heldBy: simulated.accounts.get('other')?.coreId,
      rowId: simulated.rows_[0]?.id,
    })
    expect(journal.lines.join()).not.toContain('@example.com')
  })

  it('stop everything when their deletion does not account for each', async () => {
    let isWrong = true
    const { simulated, migration } = await migrate(CONFLICT, {
      async deleteRows(ids) {
        return isWrong ? { deletedIds: [], invalidIds: ids } : simulated.deleteRows(ids)
      },
    })
    const left = { leaveOut: 'user-2', reason: 'known already' }
    const report = await migration.correct(sourceOf([left], 'corrections'))
    expect(report).toMatchObject({ state: 'to_reconcile', counts: { left_out: 1 } })
    expect(await migration.run()).toMatchObject({ state: 'to_reconcile' })
    isWrong = false
    expect(await migration.reconcile()).toMatchObject({ state: 'complete' })
    expect(simulated.rows_).toEqual([])
  })

  it('are sent again with a code only where no other account still holds the login', async () => {
    const { simulated, journal, migration, report } = await migrate(TWO_CONFLICTS)
    expect(report).toMatchObject({ counts: { failed: 2 } })
    simulated.accounts.delete('other4')
    const corrected = await migration.correct({ again: ['E003'] })
    expect(corrected).toMatchObject({ state: 'to_correct', counts: { failed: 1, reconciled: 9 } })
    expect(simulated.staged.get('user-2')).toBe(1)
    await expect(migration.correct({ again: ['E019'] })).rejects.toMatchObject(
      badCorrections('no record has failed or was held back with E019'),
    )
    const journaled = [...journal.lines]
    await expect(migration.correct({ again: ['E003'] })).rejects.toMatchObject(
      badCorrections('still have a login'),
    )
    expect(journal.lines).toEqual(journaled)
  })

  it('are told from those that the core has blamed for another', async () => {
    const { migration } = await migrate(CONFLICT, { usersWith: async () => [] })
    const [failed] = (await listOf(migration.identities())).filter(({ code }) => code === 'E003')
    expect(failed?.heldBy).toBeUndefined()
    expect(failed?.text).toMatch(
      / No account has this login: stage the record again with this code\.$/,
    )
  })

  it('are not corrected by what does not fit their identity', async () => {
    const { migration } = await migrate(CONFLICT)
    const faults: [object, string][] = [
      [{ leaveOut: 'nobody', reason: 'r' }, 'line 1: the source has no such identity'],
      [{ accept: 'user-2', reason: 'r' }, 'line 1: this identity cannot be accepted'],
      [{ leaveOut: 'user-1', reason: 'r' }, 'line 1: this identity cannot be left out'],
      [
        { replaces: 'user-2', user: { externalUserId: 'user-2', loginMethods: [] } },
        'line 1: no_login_method in loginMethods',
      ],
    ]
    for (const [correction, message] of faults) {
      const corrected = migration.correct(sourceOf([correction], 'corrections'))
      await expect(corrected).rejects.toMatchObject(badCorrections(message))
    }
    expect(await migration.status()).toMatchObject({ counts: { failed: 1 } })
  })

  it('are not corrected with a login that another line has', async () => {
    const { simulated, migration } = await migrate(TWO_CONFLICTS)
    const faults: [object[], string][] = [
      [
        [replace('user-2', 'new'), replace('user-4', 'new')],
        'line 2: login_twice in loginMethods: Line 1 has the same login',
      ],
      [
        [replace('user-4', 'new'), replace('user-2', 'user-7')],
        'line 2: login_twice in loginMethods: Line 8 of the source has the same login',
      ],
    ]
    for (const [corrections, message] of faults) {
      const corrected = migration.correct(sourceOf(corrections, 'corrections'))
      await expect(corrected).rejects.toMatchObject(badCorrections(message))
    }
    simulated.accounts.delete('other4')
    const swapped = [replace('user-2', 'user-4'), replace('user-4', 'new')]
    const report = await migration.correct(sourceOf(swapped, 'corrections'))
    expect(report).toMatchObject({ state: 'complete', counts: { reconciled: 10 } })
  })

  it('are not corrected with a login that an earlier correction has given', async () => {
    const { migration } = await migrate(TWO_CONFLICTS)
    await migration.correct(sourceOf([replace('user-2', 'new')], 'first'))
    const corrected = migration.correct(sourceOf([replace('user-4', 'new')], 'second'))
    await expect(corrected).rejects.toMatchObject(
      badCorrections('Line 1 of first has the same login'),
    )
  })
})
