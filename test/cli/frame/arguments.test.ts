import { describe, expect, it } from 'vitest'
import {
  formatExactDuration,
  parseDuration,
  refuseSecrets,
} from '../../../src/cli/frame/arguments.js'

const isRefused = (text: string): boolean => {
  try {
    refuseSecrets(['probe', text])
    return false
  } catch {
    return true
  }
}

const TOKEN = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJiaWxsaW5nIn0.c2ln'

describe('a secret among the arguments', () => {
  it.each([
    'redis+tls://h',
    'x+redis://h',
    'say valkeys://h',
    'redis:x redis://h',
    'REDIS://h',
    'x://u:p@h',
    'x://:@h',
    'a://b c://u:p:q@h',
    TOKEN,
    `--${TOKEN}`,
    `x.y.${TOKEN}`,
    'eyJ.x eyJa.b.c',
  ])('is found in %s', (text) => {
    expect(isRefused(text)).toBe(true)
  })

  it.each([
    'redis:/h',
    'myredis://h',
    'x://u@h',
    'x://h:1/a@b',
    'a:b@c',
    'eyJ.a.b',
    'eyJa.b.',
    'eyJa..b',
    'keyJa.b.c',
  ])('is not found in %s', (text) => {
    expect(isRefused(text)).toBe(false)
  })

  it.each(['redis+', 'valkey:', '://', 'x://a:', 'eyJ-', 'eyJa.', 'eyJ.'])(
    'is searched for in an argument of 80 KB of %j without a delay',
    (text) => {
      const startedAt = performance.now()
      isRefused(text.repeat(80_000 / text.length))
      expect(performance.now() - startedAt).toBeLessThan(200)
    },
  )
})

const RANGE = { minMs: 50, maxMs: 7 * 86_400_000 }

describe('a duration', () => {
  it.each([
    ['50ms', 50],
    ['1s', 1000],
    ['15m', 900_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
  ])('of %s is %d ms, and the other way round', (text, ms) => {
    expect(parseDuration('--for', text, RANGE)).toBe(ms)
    expect(formatExactDuration(ms)).toBe(text)
  })

  it.each(['', '5', 's', '-1s', '1.5s', '1S', '1w'])('is not %j', (text) => {
    expect(() => parseDuration('--for', text, RANGE)).toThrow('--for must be a number and a unit')
  })

  it.each(['49ms', '8d'])('of %s is out of range', (text) => {
    expect(() => parseDuration('--for', text, RANGE)).toThrow('--for must be from 50ms to 7d')
  })
})
