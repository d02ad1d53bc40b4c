import { describe, expect, it } from 'vitest'
import type { CoreUser } from '../../../src/migration/core/core-client.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { people, person, sourceOf } from './support/people.js'
import { listOf, scene as sceneOf } from './support/scene.js'

const USERS = 6

/** A run whose core tells of each account what `change` makes of it. */
function scene(change: (user: CoreUser) => CoreUser = (user) => user) {
  const asked: string[] = []
  const { simulated, open } = sceneOf(
    {
      async user(id, options) {
        asked.push(id)
        const user = await simulated.user(id, options)
        return user && change(user)
      },
    },
    {},
    { users: USERS },
  )
  return { simulated, open, asked }
}

describe('the reconciliation of a run', () => {
  it('tells an account that two identities have, whichever is looked up first', async () => {
    for (const [linked, primary] of [
      ['user-1', 'user-4'],
      ['user-4', 'user-1'],
    ] as const) {
      const { open } = scene((user) => (user.id === linked ? { ...user, id: primary } : user))
      const migration = await open()
      const report = await migration.run()
      expect(report).toMatchObject({ state: 'to_reconcile', counts: { shared: 2, reconciled: 4 } })
      const accept = ['user-1', 'user-4'].map((id) => ({ accept: id, reason: 'one person' }))
      const accepted = await migration.correct(sourceOf(accept, 'corrections'))
      expect(accepted).toMatchObject({ state: 'complete', counts: { accepted: 2 } })
    }
  })

  it('deletes the row of somebody who has failed and shares an account', async () => {
    const { simulated, open } = scene((user) =>
      user.id === 'user-1' ? { ...user, id: 'user-4' } : user,
    )
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
    const { open } = scene((user) => {
      if (user.id !== 'user-2' || isMended) return user
      const loginMethods = user.loginMethods.map((each) => ({ ...each, verified: false }))
      return { ...user, loginMethods }
    })
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
    const { open, asked } = scene()
    const migration = await open()
    expect(await migration.run()).toMatchObject({ state: 'complete' })
    expect(asked).toHaveLength(USERS)
    expect(await migration.run()).toMatchObject({ state: 'complete' })
    expect(asked).toHaveLength(USERS)
  })
})
