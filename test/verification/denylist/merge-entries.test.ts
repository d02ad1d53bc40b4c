import { describe, expect, it } from 'vitest'
import {
  type LocalEntries,
  merge,
  NO_ENTRIES,
  withoutEnded,
} from '../../../src/verification/denylist/merge-entries.js'
import { caller, listOf, START_SECONDS } from './story.js'

const END = START_SECONDS + 60
const holding = (number: number, entry = caller({ number })): LocalEntries =>
  merge(NO_ENTRIES, listOf(number, { a: entry }))
const allowedAt = (number: number) => ({ tombstones: new Map([['a', number]]) })

describe('what is held', () => {
  it('that the list lacks is still known as such after another has ended', () => {
    const entries = { a: caller({ endsAt: END }), b: caller(), c: caller() }
    const held = merge(merge(NO_ENTRIES, listOf(1, entries)), listOf(2, { c: caller() }))
    expect([...held.retained]).toEqual(['a', 'b'])
    const after = withoutEnded(held, END)
    expect([...after.entries.keys()].sort()).toEqual(['b', 'c'])
    expect([...after.retained]).toEqual(['b'])
  })

  it('takes the earlier end of what was allowed and denied again', () => {
    const list = listOf(7, { a: caller({ number: 7, endsAt: END }) }, allowedAt(6))
    const { entries, retained: kept } = merge(holding(5), list)
    expect(entries.get('a')?.endsAt).toBe(END)
    expect(kept.size).toBe(0)
  })

  it.each([END, Number.POSITIVE_INFINITY])('keeps its later cut-off (end: %d)', (endsAt) => {
    const cutOff = { kind: 'issued-before', value: '' } as const
    const held = holding(5, caller({ ...cutOff, number: 5, issuedBefore: 200 }))
    const list = listOf(6, { a: caller({ ...cutOff, number: 6, issuedBefore: 100, endsAt }) })
    const { entries, retained: kept } = merge(held, list)
    expect(entries.get('a')?.issuedBefore).toBe(200)
    expect(kept.size).toBe(1)
  })

  it('keeps its higher number against an older entry that lasts as long, and is listed all the same', () => {
    const held = merge(holding(9), listOf(6, { a: caller({ number: 6 }) }))
    expect(held.retained.size).toBe(0)
    // Another replica has the mark that was older than what is held.
    expect(merge(held, listOf(7, {}, allowedAt(7))).entries.size).toBe(1)
    expect(merge(held, listOf(10, {}, allowedAt(10))).entries.size).toBe(0)
  })
})
