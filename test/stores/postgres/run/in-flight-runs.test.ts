import { describe, expect, it } from 'vitest'
import { createInFlightRuns } from '../../../../src/stores/postgres/run/create-run.js'

const isSettled = async (promise: Promise<unknown>): Promise<boolean> =>
  (await Promise.race([promise.then(() => 'settled'), new Promise((r) => setImmediate(r))])) ===
  'settled'

describe('The writes under way in a process', () => {
  it('are none at first', async () => {
    expect(await createInFlightRuns().isRunning('key')).toBe(false)
  })

  it('are waited for until their handler runs, by equal requests and others', async () => {
    const inFlight = createInFlightRuns()
    const run = inFlight.start('key')
    const answers = [inFlight.isRunning('key'), inFlight.isRunning('key')]
    expect(await isSettled(Promise.all(answers))).toBe(false)
    run.markRunning()
    expect(await Promise.all(answers)).toEqual([true, true])
    expect(await inFlight.isRunning('key')).toBe(true)
    expect(await inFlight.isRunning('another key')).toBe(false)
  })

  it('are none after they finish, whether their handler ran or not', async () => {
    const inFlight = createInFlightRuns()
    for (const hasRun of [true, false]) {
      const run = inFlight.start('key')
      const answers = hasRun ? undefined : inFlight.isRunning('key')
      if (hasRun) run.markRunning()
      run.finish()
      expect(await answers).toBe(hasRun ? undefined : false)
      expect(await inFlight.isRunning('key')).toBe(false)
    }
  })

  it('of two that start, the first is waited for, and the one that runs counts', async () => {
    const inFlight = createInFlightRuns()
    const first = inFlight.start('key')
    const second = inFlight.start('key')
    const answers = inFlight.isRunning('key')
    second.markRunning()
    expect(await isSettled(answers)).toBe(false)
    first.finish()
    expect(await answers).toBe(false)
    second.finish()
    expect(await inFlight.isRunning('key')).toBe(false)
  })

  it('one that is not registered leaves the registered one when it finishes', async () => {
    const inFlight = createInFlightRuns()
    const first = inFlight.start('key')
    const second = inFlight.start('key')
    first.markRunning()
    second.finish()
    expect(await inFlight.isRunning('key')).toBe(true)
    first.finish()
    const third = inFlight.start('key')
    const fourth = inFlight.start('key')
    third.finish()
    fourth.markRunning()
    expect(await inFlight.isRunning('key')).toBe(true)
    third.finish()
    expect(await inFlight.isRunning('key')).toBe(true)
  })
})
