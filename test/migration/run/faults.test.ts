import { describe, expect, it } from 'vitest'
import type { CoreClient } from '../../../src/migration/core/core-client.js'
import { CoreError } from '../../../src/migration/core/core-error.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import type { MigrationOptions } from '../../../src/migration/run/migration.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import type { IdentityReport } from '../../../src/migration/run/report.js'
import { memoryJournal } from './support/memory-journal.js'
import { people, person, sourceOf } from './support/people.js'
import { simulatedCore } from './support/simulated-core.js'
import { simulatedTime } from './support/simulated-time.js'

const USERS = 10

function scene(overrides: Partial<CoreClient> = {}, options: Partial<MigrationOptions> = {}) {
  const time = simulatedTime()
  const simulated = simulatedCore({ time, fate: () => 'done' })
  time.every(3000, () => simulated.runJob(4))
  const journal = memoryJournal()
  const open = (more: Partial<MigrationOptions> = {}) =>
    openMigrationWith(
      {
        core: { ...simulated, ...overrides },
        source: sourceOf(people(USERS)),
        journal,
        batchUsers: 4,
        ...options,
        ...more,
      },
      time,
    )
  return { time, simulated, journal, open }
}

async function listOf(identities: AsyncIterable<IdentityReport>): Promise<IdentityReport[]> {
  const list: IdentityReport[] = []
  for await (const identity of identities) list.push(identity)
  return list
}

const refusal = (code: CoreError['code']) =>
  new CoreError(`the core says ${code}`, { code, outcome: 'refused' })

describe('a call that the core does not take', () => {
  it('is halved until it is small enough', async () => {
    const sizes: number[] = []
    const { simulated, open, journal } = scene({
      async stageUsers(users) {
        sizes.push(users.length)
        if (users.length > 1) throw refusal('too_large')
        return simulated.stageUsers(users)
      },
    })
    const report = await (await open()).run()
    expect(report.state).toBe('complete')
    expect(sizes.slice(0, 3)).toEqual([4, 2, 1])
    expect(Math.max(...simulated.staged.values())).toBe(1)
    expect(journal.lines.filter((line) => line.includes('too_large'))).toHaveLength(2)
  })

  it('leaves a record that is too large by itself to a person', async () => {
    const { simulated, open } = scene({
      async stageUsers(users) {
        const holds = users.some(({ externalUserId }) => externalUserId === 'user-3')
        if (holds) throw refusal('too_large')
        return simulated.stageUsers(users)
      },
    })
    const migration = await open()
    const report = await migration.run()
    expect(report).toMatchObject({ state: 'to_correct', counts: { invalid: 1, reconciled: 9 } })
  })

  it('is whole again after a record that was too large by itself', async () => {
    const sizes: number[] = []
    const { simulated, open } = scene({
      async stageUsers(users) {
        sizes.push(users.length)
        const holds = users.some(({ externalUserId }) => externalUserId === 'user-1')
        if (holds) throw refusal('too_large')
        return simulated.stageUsers(users)
      },
    })
    const report = await (await open({ source: sourceOf(people(40)) })).run()
    expect(report).toMatchObject({ state: 'to_correct', counts: { invalid: 1, reconciled: 39 } })
    expect(sizes.slice(0, 4)).toEqual([4, 2, 1, 1])
    expect(sizes.slice(-7, -1)).toEqual([4, 4, 4, 4, 4, 4])
  })

  it('is sent again without the users that the core rejects, who are recorded', async () => {
    const { simulated, open, journal } = scene({
      async stageUsers(users) {
        const index = users.findIndex(({ externalUserId }) => externalUserId === 'user-5')
        if (index === -1) return simulated.stageUsers(users)
        const errors = ['email user-5@example.com is too long. Max length is 256.']
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

  it('ends the run when the core refuses it, and the next run goes on', async () => {
    let isRefused = true
    const { simulated, open } = scene({
      async stageUsers(users) {
        if (isRefused) throw refusal('invalid_api_key')
        return simulated.stageUsers(users)
      },
    })
    const migration = await open()
    const report = await migration.run()
    expect(report).toMatchObject({ state: 'core_fault', counts: { pending: USERS } })
    expect(report.advice[0]).toBe('The core: the core says invalid_api_key')
    expect(await migration.status()).toMatchObject({ state: 'core_fault' })
    isRefused = false
    expect(await migration.run()).toMatchObject({ state: 'complete' })
  })

  it('is given up after three replies lost in a row, all of them resolved', async () => {
    const { open, journal } = scene({
      async stageUsers() {
        throw new CoreError('no reply', { code: 'server_error', outcome: 'unknown' })
      },
    })
    expect(await (await open()).run()).toMatchObject({ state: 'core_fault' })
    expect(journal.lines.filter((line) => line.includes('batch_absent'))).toHaveLength(3)
  })
})

describe('a run that waits', () => {
  it('tells a stall once nothing has changed for so long', async () => {
    const { open, time } = scene({ countRows: async (status) => (status === 'NEW' ? 3 : 0) })
    const migration = await open({ stallMinutes: 2, allowForeignRows: true })
    const report = await migration.run()
    expect(report.state).toBe('stalled')
    expect(time.elapsedMs()).toBeGreaterThan(120_000)
    expect(time.elapsedMs()).toBeLessThan(150_000)
  })

  it('repeats polls that fail, until it has failed for so long', async () => {
    let polls = 0
    const { simulated, open } = scene({
      async countRows(status) {
        polls += 1
        if (polls > 3 && polls < 12) throw refusal('server_error')
        return simulated.countRows(status)
      },
    })
    expect(await (await open()).run()).toMatchObject({ state: 'complete' })
  })

  it('is interrupted by its signal, and the next run goes on', async () => {
    const stop = new AbortController()
    const { open } = scene()
    const migration = await open({
      onProgress: ({ type }) => type === 'waiting' && stop.abort(new Error('stopped')),
    })
    expect(await migration.run({ signal: stop.signal })).toMatchObject({ state: 'interrupted' })
    expect(await migration.run()).toMatchObject({ state: 'complete' })
  })
})

describe('rows that have failed', () => {
  const conflict = { ...person('user-2'), externalUserId: 'other' } as ImportUser

  it('are told with their reason and who holds the login, without account data', async () => {
    const { simulated, open, journal } = scene()
    simulated.importNow(conflict)
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
    expect(failed?.text).not.toContain('@example.com')
    expect(journal.lines.join()).not.toContain('@example.com')
  })

  it('stop everything when their deletion does not account for each', async () => {
    let isWrong = true
    const { simulated, open } = scene({
      async deleteRows(ids) {
        if (isWrong) return { deletedIds: [], invalidIds: [] }
        return simulated.deleteRows(ids)
      },
    })
    simulated.importNow(conflict)
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

  it('are sent again with a code, once its cause is mended', async () => {
    const { simulated, open } = scene()
    simulated.importNow(conflict)
    const migration = await open()
    await migration.run()
    simulated.accounts.delete('other')
    await expect(migration.correct({ again: ['E019'] })).rejects.toMatchObject({
      code: 'bad_corrections',
      message: 'nobody has failed with E019',
    })
    expect(await migration.correct({ again: ['E003'] })).toMatchObject({ state: 'complete' })
  })

  it('are sent again with a code only where no other account still holds the login', async () => {
    const { simulated, open } = scene()
    simulated.importNow(conflict)
    simulated.importNow({ ...person('user-4'), externalUserId: 'gone' } as ImportUser)
    const migration = await open()
    expect(await migration.run()).toMatchObject({ counts: { failed: 2 } })
    simulated.accounts.delete('gone')
    const report = await migration.correct({ again: ['E003'] })
    expect(report).toMatchObject({ state: 'to_correct', counts: { failed: 1, reconciled: 9 } })
    expect(simulated.staged.get('user-2')).toBe(1)
    await expect(migration.correct({ again: ['E003'] })).rejects.toMatchObject({
      code: 'bad_corrections',
      message: expect.stringContaining('still hold a login'),
    })
  })

  it('are told from those that the core has blamed for another', async () => {
    const { simulated, open } = scene({ usersWith: async () => [] })
    simulated.importNow(conflict)
    const migration = await open()
    await migration.run()
    const [failed] = (await listOf(migration.identities())).filter(({ code }) => code === 'E003')
    expect(failed?.heldBy).toBeUndefined()
    expect(failed?.text).toMatch(
      / No account holds it: the user is to be sent again with this code\.$/,
    )
  })

  it('are not corrected by what does not fit their identity', async () => {
    const { simulated, open } = scene()
    simulated.importNow(conflict)
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
})

describe('a journal', () => {
  it('is refused with another source, another core or without its corrections', async () => {
    const { open } = scene()
    const first = await open()
    await first.run()
    const other = await open({ source: sourceOf(people(3), 'others') })
    await expect(other.run()).rejects.toMatchObject({ code: 'bad_journal' })
    const changed = await open({ source: sourceOf(people(USERS + 1)) })
    await expect(changed.run()).rejects.toMatchObject({ code: 'bad_source' })
    const corrected = await open({ corrections: [sourceOf([{}], 'corrections')] })
    await expect(corrected.run()).rejects.toMatchObject({ code: 'bad_corrections' })
  })

  it('of another core is refused when it is opened', async () => {
    const { open, simulated } = scene()
    const at = (baseUrl: string) => open({ core: { ...simulated, baseUrl } })
    await (await at('https://one.example/')).run()
    await expect(at('https://two.example')).rejects.toMatchObject({ code: 'bad_journal' })
    await expect(at('https://one.example')).resolves.toBeDefined()
  })

  it('that cannot be written ends the run, and nothing is sent', async () => {
    const { open, simulated } = scene()
    const broken = memoryJournal([], () => {
      throw new Error('disk full')
    })
    await expect((await open({ journal: broken })).run()).rejects.toThrow('disk full')
    expect(simulated.staged.size).toBe(0)
  })
})

describe('an invalid record', () => {
  it('is told without what its texts quote of account data', async () => {
    const userRoles = [{ role: 'admin', tenantIds: ['ada@example.com'] }]
    const { open } = scene({}, { source: sourceOf([person('user-0', { userRoles })]) })
    const [identity] = await listOf(
      await open().then(async (migration) => {
        await migration.check()
        return migration.identities()
      }),
    )
    expect(identity?.errors?.[0]?.message).toBe(
      'TenantId … for a user role does not exist in loginMethods.',
    )
  })
})

describe('openMigration', () => {
  it('begins the journal once, whoever asks for the source at the same time', async () => {
    const { open, journal } = scene()
    const migration = await open()
    const [, report] = await Promise.all([
      listOf(migration.identities()),
      migration.run(),
      listOf(migration.identities()),
    ])
    expect(report).toMatchObject({ state: 'complete' })
    expect(journal.lines.filter((line) => line.includes('"begun"'))).toHaveLength(1)
  })

  it('names each option that is wrong', async () => {
    const { open } = scene()
    const wrong = { batchUsers: 0, lookUps: 65, pollSeconds: 0, nonsense: 1 } as object
    await expect(open(wrong)).rejects.toThrow(TypeError)
    await expect(open(wrong)).rejects.toThrow(/batchUsers.*pollSeconds.*lookUps.*nonsense/)
  })

  it('takes one step at a time', async () => {
    const migration = await scene().open()
    const first = migration.run()
    await expect(migration.run()).rejects.toThrow('under way')
    expect(await first).toMatchObject({ state: 'complete' })
  })
})
