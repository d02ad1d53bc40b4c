import { expect, it, vi } from 'vitest'
import type { ListEvent } from '../../../src/verification/denylist/list-state.js'
import { readClocks } from '../../../src/verification/denylist/list-state.js'
import { createLocalDenylist } from '../../../src/verification/denylist/local-denylist.js'
import { collectEvents } from '../../support/observe/channel-events.js'
import { caller, listOf } from './story.js'

const ISSUER = 'https://core.example'
const OPTIONS = { maxStaleSeconds: 10, whenUnknown: 'refuse' } as const

const readNow = (list: ReturnType<typeof listOf>): ListEvent => {
  const at = readClocks()
  return { type: 'read', at, requestedAt: at, list }
}

it('has the sets of each issuer', () => {
  const held = createLocalDenylist(OPTIONS)
  const key = caller({ issuer: 'https://other.example', kind: 'key', value: 'd-1' })
  held.apply(readNow(listOf(1, { a: caller(), b: key })))
  const none = { callers: new Set(), keys: new Set(), tokenIds: new Set() }
  expect(held.lists(ISSUER)).toEqual({ ...none, callers: new Set(['orders']) })
  expect(held.lists('https://other.example')).toEqual({ ...none, keys: new Set(['d-1']) })
  expect(held.lists('https://third.example')).toEqual(none)
})

it('is unknown at once when the wall clock has passed its time: the machine may have slept', () => {
  const held = createLocalDenylist(OPTIONS)
  held.apply(readNow(listOf(1)))
  const now = Date.now()
  vi.spyOn(Date, 'now').mockReturnValue(now + 9_000)
  expect(held.lists(ISSUER)).toBeDefined()
  vi.spyOn(Date, 'now').mockReturnValue(now + 10_100)
  expect(held.lists(ISSUER)).toBeUndefined()
})

it('is unknown from the next look on when the monotonic clock has passed its time', () => {
  const held = createLocalDenylist(OPTIONS)
  const { wallMs, monotonicMs } = readClocks()
  const readAt = { wallMs: wallMs + 3_600_000, monotonicMs }
  held.apply({ type: 'read', at: readAt, requestedAt: readAt, list: listOf(1) })
  const fail = (afterMs: number): void =>
    held.apply({
      type: 'failed',
      at: { wallMs, monotonicMs: monotonicMs + afterMs },
      code: 'network',
    })
  fail(9_000)
  expect(held.lists(ISSUER)).toBeDefined()
  fail(10_100)
  expect(held.lists(ISSUER)).toBeUndefined()
})

it.each(['refuse', 'accept'] as const)(
  'says once that it has expired, to the first request that finds it so: %s',
  (whenUnknown) => {
    const heard = collectEvents('denylist')
    const held = createLocalDenylist({ ...OPTIONS, whenUnknown })
    expect(held.lists(ISSUER) === undefined).toBe(whenUnknown === 'refuse')
    held.apply(readNow(listOf(1)))
    heard.length = 0
    const now = Date.now()
    vi.spyOn(Date, 'now').mockReturnValue(now + 10_100)
    for (const _ of ['first', 'second']) held.lists(ISSUER)
    expect(heard).toEqual([{ type: 'expired', reason: 'timeout' }])
    held.apply(readNow(listOf(1)))
    expect(heard.slice(1)).toEqual([{ type: 'recovered' }])
  },
)
