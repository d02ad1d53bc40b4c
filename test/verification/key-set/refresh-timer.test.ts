import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createTimer } from '../../../src/verification/key-set/refresher.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

it('wakes once, after the delay', () => {
  const wake = vi.fn()
  createTimer(wake).in(() => 1000)
  vi.advanceTimersByTime(999)
  expect(wake).not.toHaveBeenCalled()
  vi.advanceTimersByTime(10_000)
  expect(wake).toHaveBeenCalledOnce()
})

it('replaces what was set before', () => {
  const wake = vi.fn()
  const wakeUp = createTimer(wake)
  wakeUp.in(() => 1000)
  wakeUp.in(() => 5000)
  vi.advanceTimersByTime(4999)
  expect(wake).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(wake).toHaveBeenCalledOnce()
})

it('does not wake once cancelled', () => {
  const wake = vi.fn()
  const wakeUp = createTimer(wake)
  wakeUp.in(() => 1000)
  wakeUp.cancel()
  vi.advanceTimersByTime(10_000)
  expect(wake).not.toHaveBeenCalled()
})

it.each([0, -1, -1e12])('does not spin on a delay of %d', (delayMs) => {
  const wake = vi.fn()
  const wakeUp = createTimer(() => {
    wake()
    wakeUp.in(() => delayMs)
  })
  wakeUp.in(() => delayMs)
  vi.advanceTimersByTime(1000)
  expect(wake.mock.calls.length).toBeLessThanOrEqual(50)
})

it('does not wake at once for a delay that no timer can hold', () => {
  const wake = vi.fn()
  createTimer(wake).in(() => 2 ** 40)
  vi.advanceTimersByTime(1_000_000)
  expect(wake).not.toHaveBeenCalled()
})

it('tries again later when the clock throws, before and while it wakes', () => {
  const failing = vi.fn(() => {
    throw new Error('no time')
  })
  const wakeUp = createTimer(failing)
  wakeUp.in(failing)
  vi.advanceTimersByTime(5000)
  expect(failing).toHaveBeenCalledTimes(2)
  vi.advanceTimersByTime(5000)
  expect(failing).toHaveBeenCalledTimes(3)
})

it('never holds the process open', () => {
  vi.useRealTimers()
  const before = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const wakeUp = createTimer(() => {})
  wakeUp.in(() => 60_000)
  const after = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  wakeUp.cancel()
  expect(after).toBe(before)
})
