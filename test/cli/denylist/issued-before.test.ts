import { describe, expect, it } from 'vitest'
import { readIssuedBefore } from '../../../src/cli/denylist/deny-target.js'
import { readArguments } from '../../../src/cli/frame/arguments.js'

const TOLERANCE = { tolerance: { kind: 'text', help: 'of clocks' } } as const

const read = (text: string, ...argv: string[]) =>
  readIssuedBefore(text, readArguments(argv, { options: TOLERANCE, maxValues: 0 }))

describe('a cut-off', () => {
  it.each([
    ['1767225600', 1_767_225_600],
    ['1767225600.25', 1_767_225_600.25],
    ['2026-01-01T00:00Z', 1_767_225_600],
    ['2026-01-01T00:00:00.5Z', 1_767_225_600.5],
    ['2025-12-31T22:30:00-01:30', 1_767_225_600],
    ['2024-02-29T00:00:00Z', 1_709_164_800],
  ])('may be %s', (text, second) => {
    expect(read(text)).toEqual({ kind: 'second', second })
  })

  it.each([
    '2026-02-29T00:00:00Z',
    '2026-02-30T00:00:00Z',
    '2026-04-31T12:00:00+02:00',
    '2026-00-01T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-01T25:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:00+25:00',
    '2026-01-01T00:00:00',
    '2026-01-01',
    '1960-01-01T00:00:00Z',
    'yesterday',
    '-1',
    '',
  ])('is not %j', (text) => {
    expect(() => read(text)).toThrow(
      /^issued-before expects now, seconds since the epoch, or a time/,
    )
  })

  it('is not in milliseconds', () => {
    expect(() => read('1767225600000')).toThrow('not milliseconds')
  })

  it('is of the server with now, and has a tolerance of its own', () => {
    expect(read('now')).toEqual({ kind: 'now', toleranceSeconds: 5 })
    expect(read('now', '--tolerance', '1500ms')).toEqual({ kind: 'now', toleranceSeconds: 2 })
    expect(() => read('1767225600', '--tolerance', '1s')).toThrow('--tolerance is only for')
  })
})
