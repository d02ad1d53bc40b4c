import { describe, expect, it } from 'vitest'
import { CoreError } from '../../../src/migration/core/core-error.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { scene, USERS } from './support/scene.js'

const noReply = () => new CoreError('no reply', { code: 'timeout', outcome: 'unknown' })

describe('a call without reply', () => {
  it('is done where each user has an account, and may land yet', async () => {
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
    expect(journal.lines).toContain('{"type":"batch_staged","batch":1,"by":"each"}')

    await simulated.stageUsers(lost)
    time.pass(60_000)
    expect(simulated.rows_.map(({ status }) => status)).toEqual(lost.map(() => 'FAILED'))
    expect(await migration.reconcile()).toMatchObject({ state: 'complete' })
    expect(simulated.rows_).toEqual([])
  })

  it('is not done by a row that an earlier one may have staged', async () => {
    const sent: string[][] = []
    const { simulated, open } = scene(
      {
        async stageUsers(users) {
          sent.push(users.map(({ externalUserId = '' }) => externalUserId))
          if (sent.length === 1) throw noReply()
          if (sent.length === 2) {
            await simulated.stageUsers(users.slice(0, 1))
            throw noReply()
          }
          return simulated.stageUsers(users)
        },
      },
      { settleSeconds: 10 },
    )
    const report = await (await open()).run()
    expect(report).toMatchObject({ state: 'complete', counts: { reconciled: USERS } })
    const [first = []] = sent
    expect(sent.slice(1, 3)).toEqual([first, first.slice(1)])
  })
})
