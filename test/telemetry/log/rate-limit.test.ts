import { AsyncLocalStorage } from 'node:async_hooks'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { Line } from '../../../src/telemetry/log/line.js'
import {
  type RateLimiter,
  rateLimit,
  type Suppressed,
} from '../../../src/telemetry/log/rate-limit.js'

const EVERY_MS = 10_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const line = (reason: string, caller?: string): Line => ({
  level: 'warn',
  message: 'no matter',
  reason,
  caller,
})

function open(burst: number): { bursts: RateLimiter; reports: Suppressed[] } {
  const reports: Suppressed[] = []
  const report = (_level: string, leftOut: Suppressed): void => void reports.push(leftOut)
  return { bursts: rateLimit({ burst, everyMs: EVERY_MS, report }), reports }
}

const admitted = (bursts: RateLimiter, lines: readonly Line[]): number =>
  lines.filter((one) => bursts.admit(one)).length

const times = (count: number, one: Line): Line[] => Array.from({ length: count }, () => one)

it('admits so many lines of one reason and caller, then says at the end how many it left out', () => {
  const { bursts, reports } = open(3)
  expect(admitted(bursts, times(10, line('token_expired', 'billing')))).toBe(3)
  expect(admitted(bursts, times(3, line('token_expired', 'reporting')))).toBe(3)
  expect(admitted(bursts, times(2, line('token_denied', 'billing')))).toBe(2)
  vi.advanceTimersByTime(EVERY_MS - 1)
  expect(reports).toEqual([])
  vi.advanceTimersByTime(1)
  expect(reports).toEqual([
    { type: 'left_out', reason: 'token_expired', caller: 'billing', lines: 7 },
  ])
  expect(admitted(bursts, times(4, line('token_expired', 'billing')))).toBe(3)
})

it('begins each period with its first line, for all reasons, and reports at its end', () => {
  const { bursts, reports } = open(1)
  admitted(bursts, times(2, line('a')))
  vi.advanceTimersByTime(6000)
  admitted(bursts, times(3, line('b')))
  vi.advanceTimersByTime(4000)
  expect(reports).toEqual([
    { type: 'left_out', reason: 'a', lines: 1 },
    { type: 'left_out', reason: 'b', lines: 2 },
  ])
  expect(vi.getTimerCount()).toBe(0)
  expect(admitted(bursts, times(2, line('b')))).toBe(1)
})

it('keeps a bounded number of counts: further callers of a reason share one', () => {
  const { bursts, reports } = open(2)
  const callers = Array.from({ length: 5000 }, (_, index) => line('unapproved', `caller-${index}`))
  expect(admitted(bursts, callers)).toBe(1000 + 2)
  expect(admitted(bursts, times(3, line('unapproved', 'caller-7')))).toBe(1)
  expect(admitted(bursts, times(3, line('other', 'caller-7')))).toBe(2)
  bursts.flush()
  expect(reports).toEqual([
    { type: 'left_out', reason: 'unapproved', caller: 'caller-7', lines: 2 },
    { type: 'left_out', reason: 'unapproved', lines: 3998 },
    { type: 'left_out', reason: 'other', lines: 1 },
  ])
})

it('flushes what was left out, once, and leaves no timer', () => {
  const { bursts, reports } = open(1)
  admitted(bursts, times(2, { ...line('key_set_failed'), jwksUri: 'https://core.test/jwks' }))
  bursts.flush()
  bursts.flush()
  vi.advanceTimersByTime(EVERY_MS)
  const known = { reason: 'key_set_failed', jwksUri: 'https://core.test/jwks' }
  expect(reports).toEqual([{ type: 'left_out', ...known, lines: 1 }])
  expect(vi.getTimerCount()).toBe(0)
})

it('reports from its timer in the context in which it was made', () => {
  vi.useRealTimers()
  const storage = new AsyncLocalStorage<string>()
  return new Promise<void>((resolve, reject) => {
    const report = (): void => {
      try {
        expect(storage.getStore()).toBe('owner')
        resolve()
      } catch (error) {
        reject(error)
      }
    }
    const bursts = storage.run('owner', () => rateLimit({ burst: 1, everyMs: 50, report }))
    storage.run('request', () => admitted(bursts, times(2, line('a'))))
  })
})
