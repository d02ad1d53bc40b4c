import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type FingerprintedRequest,
  fingerprintOf,
  operationOf,
} from '../../src/idempotency/fingerprint.js'

const of = (content: unknown, over: Partial<FingerprintedRequest> = {}): string | undefined =>
  fingerprintOf({
    method: 'POST',
    target: '/orders?a=1',
    mediaType: 'application/json',
    body: { type: 'parsed', content },
    ...over,
  })

/** What tells parsed bodies apart: their own members in any order, and `-0`. */
function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    return Object.is(a, b)
  }
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const left = Object.entries(a)
  if (left.length !== Object.keys(b).length) return false
  return left.every(
    ([name, value]) =>
      Object.hasOwn(b, name) && isSame(value, (b as Record<string, unknown>)[name]),
  )
}

/** Texts of JSON that hold what breaks naive encodings, parsed as a body parser would. */
const parsedJson = fc
  .oneof(
    fc.json({ maxDepth: 4 }),
    fc.constantFrom(
      '0',
      '-0',
      '1e400',
      '-1e400',
      'null',
      '{}',
      '[]',
      '[[]]',
      '""',
      '"0"',
      '"null"',
    ),
    fc.constantFrom('{"__proto__":{}}', '{"__proto__":1}', '{"a":{},"b":1}', '{"a":{"b":1}}'),
    fc.constantFrom('"\\ud800"', '"\\udfff"', '"\\ufffd"', '["a","b"]', '["a,b"]', '["s1:a"]'),
    fc.constantFrom('{"a":1,"b":2}', '{"b":2,"a":1}', '[1,[2]]', '[[1],2]', '[1,2]', '[null]'),
  )
  .map((text): unknown => JSON.parse(text))

describe('fingerprintOf', () => {
  it('tells two JSON bodies apart exactly when their parser does', () => {
    fc.assert(
      fc.property(parsedJson, parsedJson, (a, b) => {
        expect(of(a) === of(b)).toBe(isSame(a, b))
      }),
      { numRuns: 3000 },
    )
  })

  it('does not depend on the order of members, which objects do not have', () => {
    const reversed = (value: unknown): unknown => {
      if (typeof value !== 'object' || value === null) return value
      if (Array.isArray(value)) return value.map(reversed)
      // `fromEntries` defines members, so `__proto__` stays one.
      const entries = Object.entries(value).map(([name, inner]) => [name, reversed(inner)] as const)
      return Object.fromEntries(entries.reverse())
    }
    fc.assert(
      fc.property(parsedJson, (body) => {
        expect(of(reversed(body))).toBe(of(body))
      }),
      {
        examples: [[JSON.parse('{"b":[{"d":1,"c":2},3],"__proto__":{"y":1,"x":2},"2":0,"a":-0}')]],
      },
    )
    expect(of([1, 2])).not.toBe(of([2, 1]))
    expect(of({ a: 'b', b: 'a' })).not.toBe(of({ a: 'a', b: 'b' }))
  })

  it('is one for an object, whatever prototype its parser gave it', () => {
    for (const fields of [{}, { a: '1' }, { a: { b: [] } }]) {
      expect(of(Object.assign(Object.create(null), fields))).toBe(of(fields))
    }
  })

  it('tells each part from its neighbour', () => {
    const part = fc.constantFrom('', 'a', 'b', 'ab', ':', '1:a', '2:ab', '\ud800', '\u0000')
    const request = fc.tuple(
      part,
      part.map((text) => `/${text}`),
      part,
      part,
    )
    fc.assert(
      fc.property(request, request, (a, b) => {
        const [left, right] = [a, b].map(([method, target, mediaType, body]) =>
          of(body, { method, target, mediaType }),
        )
        expect(left === right).toBe(String(JSON.stringify(a)) === JSON.stringify(b))
      }),
    )
  })

  it('tells bytes, texts and lists of numbers apart', () => {
    const bodies = [Buffer.from('ab'), 'ab', [97, 98], Buffer.from('ac'), Buffer.alloc(0), '', {}]
    expect(new Set(bodies.map((body) => of(body))).size).toBe(bodies.length)
    expect(of(new Uint8Array([97, 98]))).toBe(of(Buffer.from('ab')))
  })

  it('holds a date by its ISO text, which is not the same as that text', () => {
    const text = '2026-01-02T03:04:05.678Z'
    const dates = [text, '2026-01-02T03:04:05.679Z', '-000001-01-01T00:00:00Z'].map(
      (each) => new Date(each),
    )
    const bodies = [...dates, text, Date.parse(text), {}]
    expect(new Set(bodies.map((body) => of({ at: [body] }))).size).toBe(bodies.length)
    expect(of({ at: new Date(text) })).toBe(of({ at: new Date('2026-01-02T04:04:05.678+01:00') }))
    const ofAnotherRealm: unknown = runInNewContext('new Date(at)', { at: text })
    expect(of(ofAnotherRealm)).toBe(of(new Date(text)))
    class Day extends Date {
      override toISOString(): string {
        return 'a day'
      }
    }
    expect(of(new Day(text))).toBe(of(new Date(text)))
  })

  it('bears any depth', () => {
    const nested = (depth: number, inner: string): unknown =>
      JSON.parse(`${'[{"a":'.repeat(depth)}${inner}${'}]'.repeat(depth)}`)
    expect(of(nested(5000, '1'))).not.toBe(of(nested(5000, '2')))
    expect(of(nested(5000, '1'))).toBe(of(nested(5000, '1')))
    expect(of(nested(4999, '1'))).not.toBe(of(nested(5000, '1')))
  })

  it('takes an absolute-form target for its path and query', () => {
    for (const origin of ['http://a', 'HTTPS://user@b:1', 'h2+x.y-z://[::1]:80']) {
      expect(of({}, { target: `${origin}/orders?a=1` })).toBe(of({}))
    }
    expect(of({}, { target: '//evil/orders?a=1' })).not.toBe(of({}))
    expect(of({}, { target: '/http://a/orders?a=1' })).not.toBe(of({}))
  })
})

it('operations are told apart by method, mount path and pattern, of whatever type', () => {
  const operations = [
    operationOf('POST', '', '/a'),
    operationOf('PUT', '', '/a'),
    operationOf('POST', '/a', ''),
    operationOf('POST', '/v1', '/a'),
    operationOf('POST', '', '/x/'),
    operationOf('POST', '', /x/),
    operationOf('POST', '', ['/a']),
    operationOf('POST', '', ['/a', '/b']),
    operationOf('POST', '', ['/a,/b']),
    operationOf('POST', '', [['/a'], '/b']),
  ]
  expect(new Set(operations).size).toBe(operations.length)
  expect(operationOf('POST', '', /x/)).toBe(operationOf('POST', '', /x/))
})
