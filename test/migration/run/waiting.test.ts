import { describe, expect, it } from 'vitest'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { person } from './support/people.js'
import { refusal, scene } from './support/scene.js'

describe('a run that waits', () => {
  it('tells a stall once nothing has changed for so long', async () => {
    const { open, time } = scene({}, { stallMinutes: 2 }, { jobEveryMs: 3_600_000 })
    const report = await (await open()).run()
    expect(report.state).toBe('stalled')
    expect(time.elapsedMs()).toBeGreaterThan(120_000)
    expect(time.elapsedMs()).toBeLessThan(150_000)
  })

  it('does not wait for the rows of others', async () => {
    const { open } = scene({ countRows: async (status) => (status === 'NEW' ? 3 : 0) })
    const migration = await open({ stallMinutes: 2, allowForeignRows: true })
    expect(await migration.run()).toMatchObject({ state: 'complete' })
  })

  it.each([
    ['are all imported', new Set<string>(), { state: 'complete', counts: { reconciled: 10 } }],
    ['wait', new Set(['user-7']), { state: 'stalled', counts: { staged: 10 } }],
  ])('ends although others go on staging rows, when its own %s', async (_, poison, expected) => {
    const { open, simulated, time } = scene(
      {},
      { stallMinutes: 10, allowForeignRows: true },
      { jobEveryMs: 300_000, jobUsers: 50, poison, blame: () => 'nobody' },
    )
    let others = 0
    time.every(10_000, () => {
      others += 1
      simulated.stageNow([person(`other-${others}`) as ImportUser])
    })
    expect(await (await open()).run()).toMatchObject(expected)
    expect(time.elapsedMs()).toBeLessThan(30 * 60_000)
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

  it('counts the time in which its polls fail neither as a stall nor as a quiet core', async () => {
    const isAway = (ms: number): boolean => ms > 100_000 && ms < 190_000
    const { simulated, open, time } = scene(
      {
        async countRows(status) {
          if (isAway(time.elapsedMs())) throw refusal('server_error')
          return simulated.countRows(status)
        },
      },
      { stallMinutes: 2 },
      { jobEveryMs: 205_000, jobUsers: 10 },
    )
    expect(await (await open()).run()).toMatchObject({ state: 'complete' })
  })

  it('ends when its polls have failed for as long as a stall takes', async () => {
    const { open, time } = scene(
      {
        async countRows(status) {
          if (status !== undefined) throw refusal('server_error')
          return 0
        },
      },
      { stallMinutes: 2 },
    )
    expect(await (await open()).run()).toMatchObject({ state: 'core_fault' })
    expect(time.elapsedMs()).toBeGreaterThan(120_000)
    expect(time.elapsedMs()).toBeLessThan(150_000)
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
