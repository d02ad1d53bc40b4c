import { describe, expect, it } from 'vitest'
import { CoreError } from '../../../src/migration/core/core-error.js'
import { people, person, sourceOf } from './support/people.js'
import { listOf, refusal, scene, USERS } from './support/scene.js'

describe('a call that the core does not take', () => {
  it('is sent again without the users that the core rejects, who are recorded', async () => {
    const { simulated, open, journal } = scene({
      async stageUsers(users) {
        const index = users.findIndex(({ externalUserId }) => externalUserId === 'user-5')
        if (index === -1) return simulated.stageUsers(users)
        const errors = ['email … is too long. Max length is 256.']
        return { outcome: 'rejected', users: [{ index, errors }] }
      },
    })
    const migration = await open()
    const report = await migration.run()
    expect(report).toMatchObject({ state: 'to_correct', counts: { invalid: 1, reconciled: 9 } })
    const identities = await listOf(migration.identities())
    expect(identities[5]).toMatchObject({
      externalUserId: 'user-5',
      line: 6,
      state: 'invalid',
      errors: [{ code: 'rejected', message: 'email … is too long. Max length is 256.' }],
    })
    expect(journal.lines.join()).not.toContain('user-5@example.com')
  })

  it('stages those again by their code who lacked a role, once the role is back', async () => {
    let hasRole = true
    const ids: (string | undefined)[] = []
    const userRoles = [{ role: 'editor', tenantIds: ['public'] }]
    const source = sourceOf([...people(4), person('editor', { userRoles })])
    const { simulated, open } = scene(
      {
        roles: async () => ['editor'],
        rolesOf: async (_tenant, id) => (id === 'editor' ? ['editor'] : []),
        async stageUsers(users) {
          const index = users.findIndex(({ externalUserId }) => externalUserId === 'editor')
          if (index === -1 || hasRole) {
            ids.push(...users.map(({ externalUserId }) => externalUserId))
            return simulated.stageUsers(users)
          }
          return {
            outcome: 'rejected',
            users: [{ index, errors: ['Role editor does not exist.'] }],
          }
        },
      },
      { source },
    )
    hasRole = false
    const migration = await open()
    const report = await migration.run()
    expect(report).toMatchObject({ state: 'to_correct', counts: { invalid: 1, reconciled: 4 } })
    const identity = (await listOf(migration.identities()))[4]
    expect(identity).toMatchObject({
      state: 'invalid',
      code: 'role_missing',
      errors: [{ code: 'rejected', message: 'Role editor does not exist.' }],
    })
    hasRole = true
    // A new process knows the code from the journal.
    const later = await open()
    expect(await later.correct({ again: ['role_missing'] })).toMatchObject({
      state: 'complete',
      counts: { reconciled: 5 },
    })
    expect(ids.filter((id) => id === 'editor')).toHaveLength(1)
  })

  it('ends the run when the core rejects it without naming a user, and the next run goes on', async () => {
    let isRejected = true
    const { simulated, open } = scene({
      async stageUsers(users) {
        return isRejected ? { outcome: 'rejected', users: [] } : simulated.stageUsers(users)
      },
    })
    const report = await (await open()).run()
    expect(report).toMatchObject({ state: 'core_fault', counts: { pending: USERS } })
    isRejected = false
    expect(await (await open()).run()).toMatchObject({ state: 'complete' })
  })

  it.each(['invalid_api_key', 'too_large'] as const)(
    'ends the run when the core refuses it with %s, and the next run goes on',
    async (code) => {
      let isRefused = true
      const { simulated, open } = scene({
        async stageUsers(users) {
          if (isRefused) throw refusal(code)
          return simulated.stageUsers(users)
        },
      })
      const migration = await open()
      const report = await migration.run()
      expect(report).toMatchObject({ state: 'core_fault', counts: { pending: USERS } })
      expect(report.advice[0]).toBe(`The core: the core says ${code}`)
      expect(await migration.status()).toMatchObject({ state: 'core_fault' })
      isRefused = false
      expect(await (await open({ batchUsers: 2 })).run()).toMatchObject({ state: 'complete' })
      expect(Math.max(...simulated.staged.values())).toBe(1)
    },
  )

  it('is given up after three replies lost in a row, all of them resolved', async () => {
    const { open, journal } = scene({
      async stageUsers() {
        throw new CoreError('no reply', { code: 'server_error', outcome: 'unknown' })
      },
    })
    expect(await (await open()).run()).toMatchObject({ state: 'core_fault' })
    expect(journal.lines.filter((line) => line.includes('absent'))).toHaveLength(3)
  })
})
