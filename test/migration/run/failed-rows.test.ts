import { describe, expect, it } from 'vitest'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { person, sourceOf } from './support/people.js'
import { listOf, scene } from './support/scene.js'

describe('rows that have failed', () => {
  const conflict = { ...person('user-2'), externalUserId: 'other' } as ImportUser

  it('are told with their reason and who holds the login, without account data', async () => {
    const { simulated, open, journal } = scene()
    simulated.importLater(conflict)
    const migration = await open()
    expect(await migration.run()).toMatchObject({ state: 'to_correct', counts: { failed: 1 } })
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
    const { simulated, open } = scene({
      async deleteRows(ids) {
        return isWrong ? { deletedIds: [], invalidIds: ids } : simulated.deleteRows(ids)
      },
    })
    simulated.importLater(conflict)
    const migration = await open()
    await migration.run()
    const left = { leaveOut: 'user-2', reason: 'known already' }
    const report = await migration.correct(sourceOf([left], 'corrections'))
    expect(report).toMatchObject({ state: 'to_reconcile', counts: { left_out: 1 } })
    expect(await migration.run()).toMatchObject({ state: 'to_reconcile' })
    isWrong = false
    expect(await migration.reconcile()).toMatchObject({ state: 'complete' })
    expect(simulated.rows_).toEqual([])
  })

  it('are sent again with a code only where no other account still holds the login', async () => {
    const { simulated, open, journal } = scene()
    simulated.importLater(conflict)
    simulated.importLater({ ...person('user-4'), externalUserId: 'gone' } as ImportUser)
    const migration = await open()
    expect(await migration.run()).toMatchObject({ counts: { failed: 2 } })
    simulated.accounts.delete('gone')
    const report = await migration.correct({ again: ['E003'] })
    expect(report).toMatchObject({ state: 'to_correct', counts: { failed: 1, reconciled: 9 } })
    expect(simulated.staged.get('user-2')).toBe(1)
    await expect(migration.correct({ again: ['E019'] })).rejects.toMatchObject({
      code: 'bad_corrections',
      message: 'no record has failed or was held back with E019',
    })
    const journaled = [...journal.lines]
    await expect(migration.correct({ again: ['E003'] })).rejects.toMatchObject({
      code: 'bad_corrections',
      message: expect.stringContaining('still have a login'),
    })
    expect(journal.lines).toEqual(journaled)
  })

  it('are told from those that the core has blamed for another', async () => {
    const { simulated, open } = scene({ usersWith: async () => [] })
    simulated.importLater(conflict)
    const migration = await open()
    await migration.run()
    const [failed] = (await listOf(migration.identities())).filter(({ code }) => code === 'E003')
    expect(failed?.heldBy).toBeUndefined()
    expect(failed?.text).toMatch(
      / No account has this login: stage the record again with this code\.$/,
    )
  })

  it('are not corrected by what does not fit their identity', async () => {
    const { simulated, open } = scene()
    simulated.importLater(conflict)
    const migration = await open()
    await migration.run()
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
      await expect(migration.correct(sourceOf([correction], 'corrections'))).rejects.toMatchObject({
        code: 'bad_corrections',
        message: expect.stringContaining(message),
      })
    }
    expect(await migration.status()).toMatchObject({ counts: { failed: 1 } })
  })

  it('are not corrected with a login that another line has', async () => {
    const { simulated, open } = scene()
    simulated.importLater(conflict)
    simulated.importLater({ ...person('user-4'), externalUserId: 'other-4' } as ImportUser)
    const migration = await open()
    await migration.run()
    const replace = (name: string, login: string) => ({
      replaces: name,
      user: { ...person(login), externalUserId: name },
    })
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
      await expect(corrected).rejects.toMatchObject({
        code: 'bad_corrections',
        message: expect.stringContaining(message),
      })
    }
    simulated.accounts.delete('other-4')
    const swapped = [replace('user-2', 'user-4'), replace('user-4', 'new')]
    const report = await migration.correct(sourceOf(swapped, 'corrections'))
    expect(report).toMatchObject({ state: 'complete', counts: { reconciled: 10 } })
  })

  it('are not corrected with a login that an earlier correction has given', async () => {
    const { simulated, open } = scene()
    simulated.importLater(conflict)
    simulated.importLater({ ...person('user-4'), externalUserId: 'other-4' } as ImportUser)
    const migration = await open()
    await migration.run()
    const taking = (name: string) => [
      { replaces: name, user: { ...person('new'), externalUserId: name } },
    ]
    await migration.correct(sourceOf(taking('user-2'), 'first'))
    await expect(migration.correct(sourceOf(taking('user-4'), 'second'))).rejects.toMatchObject({
      code: 'bad_corrections',
      message: expect.stringContaining('Line 1 of first has the same login'),
    })
  })
})
