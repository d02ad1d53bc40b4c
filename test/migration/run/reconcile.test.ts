import { describe, expect, it } from 'vitest'
import type { CoreClient } from '../../../src/migration/core/core-client.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import { memoryJournal } from './support/memory-journal.js'
import { people, person, sourceOf } from './support/people.js'
import { listOf } from './support/scene.js'
import { simulatedCore } from './support/simulated-core.js'
import { simulatedTime } from './support/simulated-time.js'

const USERS = 6

function scene(change: (core: CoreClient) => Partial<CoreClient> = () => ({})) {
  const time = simulatedTime()
  const simulated = simulatedCore({ time, fate: () => 'done' })
  time.every(3000, () => simulated.runJob(4))
  const journal = memoryJournal()
  const open = () =>
    openMigrationWith(
      { core: { ...simulated, ...change(simulated) }, source: sourceOf(people(USERS)), journal },
      time,
    )
  return { simulated, open, journal }
}

describe('the reconciliation of a run', () => {
  it('tells an account that two identities have, whichever is looked up first', async () => {
    for (const [linked, primary] of [
      ['user-1', 'user-4'],
      ['user-4', 'user-1'],
    ] as const) {
      const { open } = scene((core) => ({
        async user(id, options) {
          const user = await core.user(id, options)
          return user?.id === linked ? { ...user, id: primary } : user
        },
      }))
      const migration = await open()
      const report = await migration.run()
      expect(report).toMatchObject({ state: 'to_reconcile', counts: { shared: 2, reconciled: 4 } })
      const accept = ['user-1', 'user-4'].map((id) => ({ accept: id, reason: 'one person' }))
      const accepted = await migration.correct(sourceOf(accept, 'corrections'))
      expect(accepted).toMatchObject({ state: 'complete', counts: { accepted: 2 } })
    }
  })

  it('deletes the row of somebody who has failed and shares an account', async () => {
    const { simulated, open } = scene((core) => ({
      async user(id, options) {
        const user = await core.user(id, options)
        return user?.id === 'user-1' ? { ...user, id: 'user-4' } : user
      },
    }))
    simulated.importLater({ ...person('user-4'), externalUserId: 'other' } as ImportUser)
    const migration = await open()
    const report = await migration.run()
    expect(report).toMatchObject({ state: 'to_reconcile', counts: { shared: 2, reconciled: 4 } })
    expect(simulated.rows_).toEqual([])
    const shared = (await listOf(migration.identities()))[4]
    expect(shared).toEqual({
      externalUserId: 'user-4',
      line: 5,
      state: 'shared',
      coreUserId: simulated.accounts.get('user-1')?.coreId,
    })
    const accept = ['user-1', 'user-4'].map((id) => ({ accept: id, reason: 'one person' }))
    expect(await migration.correct(sourceOf(accept, 'corrections'))).toMatchObject({
      state: 'complete',
    })
  })

  it('tells in what an account differs, and looks again when somebody has fixed it', async () => {
    let isMended = false
    const { open } = scene((core) => ({
      async user(id, options) {
        const user = await core.user(id, options)
        if (user?.id !== 'user-2' || isMended) return user
        const loginMethods = user.loginMethods.map((each) => ({ ...each, verified: false }))
        return { ...user, loginMethods }
      },
    }))
    const migration = await open()
    expect(await migration.run()).toMatchObject({ state: 'to_reconcile', counts: { differs: 1 } })
    expect((await listOf(migration.identities()))[2]).toMatchObject({
      state: 'differs',
      coreUserId: expect.any(String),
      differences: ['loginMethods[0].isVerified'],
    })
    isMended = true
    expect(await migration.reconcile()).toMatchObject({ state: 'complete' })
  })

  it('tells who has no account though no row waits, and stages the corrected record', async () => {
    const { open, simulated } = scene()
    const migration = await open()
    await migration.run()
    simulated.accounts.delete('user-3')
    const report = await migration.reconcile()
    expect(report).toMatchObject({ state: 'to_reconcile', counts: { missing: 1 } })
    const [, , , user] = people(USERS)
    const corrections = sourceOf([{ replaces: 'user-3', user }], 'corrections')
    expect(await migration.correct(corrections)).toMatchObject({ state: 'complete' })
  })

  it('looks nobody up again once it is complete', async () => {
    const asked: string[] = []
    const { open } = scene((core) => ({
      async user(id, options) {
        asked.push(id)
        return core.user(id, options)
      },
    }))
    const migration = await open()
    expect(await migration.run()).toMatchObject({ state: 'complete' })
    expect(asked).toHaveLength(USERS)
    expect(await migration.run()).toMatchObject({ state: 'complete' })
    expect(asked).toHaveLength(USERS)
  })
})
