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

it.each([
  ['all at once', [0]],
  ['just before and just after 10 s', [0, 9900, 10_000, 10_100, 19_900, 20_000]],
  ['all the time', Array.from({ length: 400 }, (_, index) => index * 97)],
  ['slowly, then quickly', [0, 3000, 6000, 8000, 9000, 9500, 11_000, 12_000, 12_500, 13_000]],
])('admits no more in any 10 s where lines come %s, and reports once in 10 s', (_how, moments) => {
  const reportedAt: number[] = []
  const start = performance.now()
  const now = (): number => performance.now() - start
  const report = (): void => void reportedAt.push(now())
  const bursts = rateLimit({ burst: 3, everyMs: EVERY_MS, report })
  const writtenAt: number[] = []
  for (const moment of moments) {
    vi.advanceTimersByTime(moment - now())
    for (const _ of times(2, line('a'))) if (bursts.admit(line('a'))) writtenAt.push(now())
  }
  vi.advanceTimersByTime(2 * EVERY_MS)
  const mostOf = (all: readonly number[]): number =>
    Math.max(0, ...all.map((from) => all.filter((at) => at >= from && at < from + EVERY_MS).length))
  expect(mostOf(writtenAt)).toBeLessThanOrEqual(3)
  expect(mostOf(reportedAt)).toBeLessThanOrEqual(1)
})

it('leaves out nothing that comes slowly enough', () => {
  const { bursts, reports } = open(3)
  for (let count = 0; count < 30; count += 1) {
    expect(admitted(bursts, [line('a')])).toBe(1)
    vi.advanceTimersByTime(EVERY_MS / 3 + 1)
  }
  expect(reports).toEqual([])
})

it('goes on leaving out until 10 s after the last line that it admitted', () => {
  const { bursts, reports } = open(2)
  admitted(bursts, [line('a')])
  vi.advanceTimersByTime(4000)
  expect(admitted(bursts, times(3, line('a')))).toBe(1)
  vi.advanceTimersByTime(9999)
  expect(admitted(bursts, [line('a')])).toBe(0)
  vi.advanceTimersByTime(1)
  expect(reports).toEqual([{ type: 'left_out', reason: 'a', lines: 3 }])
  expect(admitted(bursts, times(3, line('a')))).toBe(2)
})

it('counts each reason and caller by itself', () => {
  const { bursts, reports } = open(1)
  admitted(bursts, times(2, line('a')))
  vi.advanceTimersByTime(6000)
  admitted(bursts, times(3, line('b')))
  vi.advanceTimersByTime(4000)
  expect(reports).toEqual([{ type: 'left_out', reason: 'a', lines: 1 }])
  vi.advanceTimersByTime(6000)
  expect(reports[1]).toEqual({ type: 'left_out', reason: 'b', lines: 2 })
  expect(vi.getTimerCount()).toBe(0)
})

it('says it with the next line where the timer has not come in time', () => {
  const { bursts, reports } = open(1)
  admitted(bursts, times(5, line('a')))
  vi.clearAllTimers()
  vi.setSystemTime(Date.now() + EVERY_MS)
  vi.advanceTimersByTime(EVERY_MS)
  expect(reports).toEqual([])
  expect(admitted(bursts, [line('b')])).toBe(1)
  expect(reports).toEqual([{ type: 'left_out', reason: 'a', lines: 4 }])
})

it('keeps a bounded number of counts: further callers of a reason share one', () => {
  const { bursts, reports } = open(2)
  const callers = Array.from({ length: 5000 }, (_, index) => line('unapproved', `caller-${index}`))
  expect(admitted(bursts, callers)).toBe(1000 + 2)
  expect(admitted(bursts, times(3, line('unapproved', 'caller-7')))).toBe(1)
  expect(admitted(bursts, times(3, line('other', 'caller-7')))).toBe(2)
  bursts.flush()
  expect(reports).toEqual([
    { type: 'left_out', reason: 'unapproved', lines: 3998 },
    { type: 'left_out', reason: 'unapproved', caller: 'caller-7', lines: 2 },
    { type: 'left_out', reason: 'other', lines: 1 },
  ])
})

it('keeps a caller with those that share a count for as long as that count lasts', () => {
  const { bursts } = open(2)
  admitted(
    bursts,
    Array.from({ length: 1000 }, (_, index) => line('unapproved', `caller-${index}`)),
  )
  vi.advanceTimersByTime(EVERY_MS - 1)
  expect(admitted(bursts, times(3, line('unapproved', 'late')))).toBe(2)
  vi.advanceTimersByTime(1)
  expect(admitted(bursts, times(3, line('unapproved', 'late')))).toBe(0)
})

it('has no caller share the count of lines without one', () => {
  const { bursts } = open(1)
  expect(admitted(bursts, times(2, line('store_unavailable')))).toBe(1)
  expect(admitted(bursts, times(2, line('store_unavailable', 'billing')))).toBe(1)
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
