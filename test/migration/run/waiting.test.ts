import { describe, expect, it } from 'vitest'
import { refusal, scene } from './support/scene.js'

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
