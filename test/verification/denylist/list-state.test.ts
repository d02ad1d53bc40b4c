import { describe, expect, it } from 'vitest'
import {
  eventsBetween,
  freshnessAt,
  INITIAL_STATE,
  knownUntil,
  type ListEvent,
  listHealth,
} from '../../../src/verification/denylist/list-state.js'
import {
  caller,
  failed,
  listOf,
  lived,
  MAX_STALE_SECONDS,
  momentAt,
  read,
  unchanged,
} from './story.js'

const stateAt = (life: typeof INITIAL_STATE, atMs: number): string =>
  freshnessAt(life, momentAt(atMs), MAX_STALE_SECONDS)

describe('its state', () => {
  it('is cold until the first list, however often it could not be read', () => {
    expect(stateAt(lived(failed(0), failed(90_000)), 90_000)).toBe('cold')
  })

  it('is fresh, then stale, then expired, by the time of the last good question', () => {
    const life = lived(read(listOf(1)))
    expect(stateAt(life, 1499)).toBe('fresh')
    expect(stateAt(life, 1500)).toBe('stale')
    expect(stateAt(life, 10_000)).toBe('stale')
    expect(stateAt(life, 10_001)).toBe('expired')
  })

  it('is fresh again with the next good answer, the list unchanged', () => {
    expect(stateAt(lived(read(listOf(1)), failed(60_000), unchanged(61_000)), 61_000)).toBe('fresh')
  })

  it('counts the time for which only the wall clock went on, as in a machine that slept', () => {
    const life = lived(read(listOf(1)))
    const woken = { ...momentAt(100), wallMs: momentAt(60_000).wallMs }
    expect(freshnessAt(life, woken, MAX_STALE_SECONDS)).toBe('expired')
  })

  it('counts the time for which the wall clock was set back', () => {
    const life = lived(read(listOf(1)))
    const setBack = { ...momentAt(60_000), wallMs: momentAt(-3_600_000).wallMs }
    expect(freshnessAt(life, setBack, MAX_STALE_SECONDS)).toBe('expired')
  })

  it('an answer that comes after the machine slept confirms what was when it was asked', () => {
    const answer = { ...unchanged(0), at: momentAt(60_000) }
    expect(lived(read(listOf(1)), answer).freshness).toBe('expired')
    const list = { ...read(listOf(1)), at: momentAt(60_000) }
    expect(lived(list).freshness).toBe('expired')
  })
})

it('is known until it would expire', () => {
  const until = (life: typeof INITIAL_STATE, atMs: number): number =>
    knownUntil(life, momentAt(atMs), MAX_STALE_SECONDS)
  expect(until(INITIAL_STATE, 0)).toBe(Number.NEGATIVE_INFINITY)
  for (const atMs of [0, 400, 60_000]) {
    expect(until(lived(read(listOf(1))), atMs)).toBe(momentAt(10_000).wallMs)
  }
})

describe('its health', () => {
  it('is that of a receiver which has read nothing', () => {
    expect(listHealth(INITIAL_STATE, momentAt(0), 10)).toStrictEqual({
      state: 'cold',
      entries: 0,
      version: 0,
    })
    expect(listHealth(lived(failed(0)), momentAt(0), 10)).toMatchObject({ lastError: 'timeout' })
  })

  it('tells version, entries, age and the last fault until that is over', () => {
    const broken = lived(read(listOf(7, { a: caller() })), failed(500))
    expect(listHealth(broken, momentAt(2000), 10)).toStrictEqual({
      state: 'stale',
      entries: 1,
      version: 7,
      ageSeconds: 2,
      lastError: 'timeout',
    })
    const healed = lived(read(listOf(7, { a: caller() })), failed(500), unchanged(2000))
    expect(listHealth(healed, momentAt(2000), 10)).toStrictEqual({
      state: 'fresh',
      entries: 1,
      version: 7,
      ageSeconds: 0,
    })
  })
})

it('remembers the highest number that it has seen, of a version or an entry', () => {
  const list = listOf(5, { a: caller({ number: 9 }) })
  expect(lived(read(list)).highestNumber).toBe(9)
  expect(lived(read(list), read(listOf(7))).highestNumber).toBe(9)
  expect(lived(read(listOf(12)), read(list)).highestNumber).toBe(12)
})

describe('what is told', () => {
  const told = (...events: readonly ListEvent[]): unknown =>
    eventsBetween(lived(...events.slice(0, -1)), lived(...events))

  it('is nothing at first, if nothing was ever written', () => {
    expect(told(read(listOf(0, {}, { version: { number: 0, nonce: '' } })))).toEqual([])
  })

  it('is a change, with what came and what went', () => {
    const before = read(listOf(1, { a: caller(), b: caller() }))
    expect(told(before)).toEqual([{ type: 'changed', version: 1, added: 2, removed: 0 }])
    const next = listOf(2, { b: caller(), c: caller() }, { tombstones: new Map([['a', 2]]) })
    expect(told(before, read(next))).toEqual([
      { type: 'changed', version: 2, added: 1, removed: 1 },
    ])
  })

  it('is a change of the nonce alone', () => {
    const next = listOf(1, {}, { nonce: 'another' })
    expect(told(read(listOf(1)), read(next))).toMatchObject([{ type: 'changed', version: 1 }])
  })

  it('is each loss of entries', () => {
    const before = read(listOf(1, { a: caller(), b: caller() }))
    expect(told(before, read(listOf(2, { a: caller() })))).toEqual([
      { type: 'changed', version: 2, added: 0, removed: 0 },
      { type: 'regressed', kept: 1 },
    ])
    expect(told(before, read(listOf(2, { a: caller() })), read(listOf(3)))).toMatchObject([
      { type: 'changed' },
      { type: 'regressed', kept: 2 },
    ])
    expect(told(before, read(listOf(2)), read(listOf(3)))).toMatchObject([{ type: 'changed' }])
  })

  it('is that it goes stale, expires and recovers, once each', () => {
    const begin = read(listOf(1))
    expect(told(begin, failed(1000))).toEqual([])
    expect(told(begin, failed(1500))).toEqual([{ type: 'stale', reason: 'timeout' }])
    expect(told(begin, failed(1500), failed(1750))).toEqual([])
    expect(told(begin, failed(1500), failed(11_000))).toEqual([
      { type: 'expired', reason: 'timeout' },
    ])
    expect(told(begin, failed(1500), unchanged(1750))).toEqual([{ type: 'recovered' }])
    expect(told(begin, failed(1000), unchanged(1250))).toEqual([])
  })

  it('is nothing of age while nothing was ever read', () => {
    expect(told(failed(0), failed(60_000))).toEqual([])
    expect(told(failed(0), read(listOf(1)))).toMatchObject([{ type: 'changed' }])
  })
})
