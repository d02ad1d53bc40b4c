import { describe, expect, it } from 'vitest'
import { CoreError } from '../../../src/migration/core/core-error.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { people } from './support/people.js'
import { scene, USERS } from './support/scene.js'

const noReply = () => new CoreError('no reply', { code: 'timeout', outcome: 'unknown' })

describe('a call without reply', () => {
  it('counts as staged where each user has an account, and may land yet', async () => {
    let lost: readonly ImportUser[] = []
    const { simulated, time, open, journal } = scene({
      async stageUsers(users) {
        if (lost.length > 0) return simulated.stageUsers(users)
        lost = users
        for (const user of users) simulated.importNow(user)
        throw noReply()
      },
    })
    const migration = await open()
    const report = await migration.run()
    expect(report).toMatchObject({ state: 'complete', counts: { reconciled: USERS } })
    expect(report.advice.join()).toContain('reconcile once more')
    expect(journal.lines).toContain(
      '{"type":"settled","result":{"outcome":"staged","by":"accounts"}}',
    )

    await simulated.stageUsers(lost)
    time.pass(60_000)
    expect(simulated.rows_.map(({ status }) => status)).toEqual(lost.map(() => 'FAILED'))
    const later = await migration.reconcile()
    expect(later.state).toBe('complete')
    expect(later.advice.join()).not.toContain('reconcile once more')
    expect(simulated.rows_).toEqual([])
  })

  it('is not done by a row that an earlier one may have staged', async () => {
    const sent: string[][] = []
    let first: readonly ImportUser[] = []
    const { simulated, open } = scene({
      async stageUsers(users) {
        sent.push(users.map(({ externalUserId = '' }) => externalUserId))
        if (sent.length === 1) first = users
        if (sent.length === 4) await simulated.stageUsers(first)
        if (sent.length <= 4) throw noReply()
        return simulated.stageUsers(users)
      },
    })
    expect(await (await open()).run()).toMatchObject({ state: 'core_fault' })
    const report = await (await open({ batchUsers: 6 })).run()
    expect(report).toMatchObject({ state: 'complete', counts: { reconciled: USERS } })
    expect(sent[3]).toEqual([...(sent[0] ?? []), 'user-4', 'user-5'])
    expect(sent[4]).toEqual(['user-4', 'user-5'])
  })

  it('is looked for once more by a run that comes later', async () => {
    const sent: string[] = []
    let calls = 0
    const { simulated, time, open } = scene({
      async stageUsers(users) {
        calls += 1
        if (calls <= 3) throw noReply()
        sent.push(...users.map(({ externalUserId = '' }) => externalUserId))
        return simulated.stageUsers(users)
      },
    })
    expect(await (await open()).run()).toMatchObject({ state: 'core_fault' })
    await simulated.stageUsers(people(4) as ImportUser[])
    time.pass(60_000)
    await (await open()).reconcile()
    const report = await (await open()).run()
    expect(report.state).toBe('complete')
    expect(report.advice.join()).toContain('reconcile once more')
    expect(sent).toEqual(['user-4', 'user-5', 'user-6', 'user-7', 'user-8', 'user-9'])
  })
})

it.each<['refused' | 'unknown', string]>([
  ['refused', 'of a look-up'],
  ['unknown', 'of the call itself'],
])('a %s too_large %s ends the run, and the next run continues', async (outcome, of) => {
  const tooLarge = new CoreError('too large', { code: 'too_large', outcome })
  let isFailing = true
  const { simulated, open } = scene({
    async stageUsers(users) {
      if (isFailing) throw of === 'of a look-up' ? noReply() : tooLarge
      return simulated.stageUsers(users)
    },
    async *rows(status, call) {
      if (isFailing && of === 'of a look-up' && status === undefined) throw tooLarge
      yield* simulated.rows(status, call)
    },
  })
  expect(await (await open()).run()).toMatchObject({ state: 'core_fault' })
  isFailing = false
  const report = await (await open()).run()
  expect(report).toMatchObject({ state: 'complete', counts: { reconciled: USERS } })
})
