import { beforeEach, expect, it, type MockInstance, vi } from 'vitest'
import { dependencyOf } from '../../../src/base/decision/dependency.js'
import { manualClock } from '../../support/manual-clock.js'

let warned: MockInstance<typeof process.emitWarning>
beforeEach(() => {
  warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
})

const clock = manualClock()
const report = { message: 'it failed', isObserved: false, clock }

it('is one for each object and kind', () => {
  const object = {}
  expect(dependencyOf('store', object)).toBe(dependencyOf('store', object))
  dependencyOf('store', object).failed(report)
  dependencyOf('denylist', object).failed(report)
  dependencyOf('store', {}).failed(report)
  expect(warned).toHaveBeenCalledTimes(3)
})

it('warns of the first failure that is not observed', () => {
  const store = dependencyOf('store', {})
  store.failed({ ...report, isObserved: true })
  expect(warned).not.toHaveBeenCalled()
  store.failed(report)
  store.failed(report)
  expect(warned.mock.calls).toEqual([
    [
      expect.stringMatching(/^express-service-auth: it failed\. .*logDecisions\(console\)\.$/),
      { type: 'ServiceAuthWarning', code: 'SERVICE_AUTH_STORE_UNAVAILABLE' },
    ],
  ])
})

it('counts the hour from the first success after the last failure', () => {
  const store = dependencyOf('store', {})
  store.failed(report)
  clock.advance(10_000)
  store.failed(report)
  store.worked(clock)
  clock.advance(3599)
  store.worked(clock)
  store.failed({ ...report, isObserved: true })
  store.worked(clock)
  clock.advance(3599)
  store.failed(report)
  expect(warned).toHaveBeenCalledTimes(1)
  store.worked(clock)
  clock.advance(3600)
  store.failed(report)
  expect(warned).toHaveBeenCalledTimes(2)
})

it('throws nothing when the clock of the app does', () => {
  const broken = (): never => {
    throw new Error('no time')
  }
  const store = dependencyOf('store', {})
  store.failed({ ...report, clock: broken })
  store.worked(broken)
  store.failed({ ...report, clock: broken })
  expect(warned).toHaveBeenCalledTimes(1)
})
