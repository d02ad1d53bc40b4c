import { expect, it } from 'vitest'
import { afterFailure, type BackOff, isBackingOff } from '../../src/base/back-off.js'

const T0 = 1000

/** The waits after so many failures in a row, in seconds. */
function waits(jitter: number, failures: number): number[] {
  let backOff: BackOff | undefined
  return Array.from({ length: failures }, () => {
    backOff = afterFailure(backOff, { at: T0, jitter })
    return (backOff.retryAt - T0) / 1000
  })
}

it('doubles from half a second up to half a minute, with jitter', () => {
  expect(waits(0, 7)).toEqual([0.5, 1, 2, 4, 8, 15, 15])
  expect(waits(1, 7)).toEqual([1, 2, 4, 8, 16, 30, 30])
  expect(waits(1, 2000).at(-1)).toBe(30)
})

it('lasts until its end, and no longer than the longest wait when the clock was set back', () => {
  const backOff = afterFailure(undefined, { at: T0, jitter: 1 })
  expect(isBackingOff(undefined, T0)).toBe(false)
  expect(isBackingOff(backOff, T0)).toBe(true)
  expect(isBackingOff(backOff, T0 + 999)).toBe(true)
  expect(isBackingOff(backOff, T0 + 1000)).toBe(false)
  expect(isBackingOff(backOff, T0 - 29_000)).toBe(true)
  expect(isBackingOff(backOff, T0 - 29_001)).toBe(false)
})
