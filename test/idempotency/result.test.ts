import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeResult, encodeResult } from '../../src/idempotency/result.js'

describe('A stored result', () => {
  it('comes back as it went in', () => {
    const result = fc.record({
      status: fc.integer({ min: 100, max: 999 }),
      headers: fc.array(fc.tuple(fc.string(), fc.string({ unit: 'binary' }))),
      body: fc.uint8Array(),
    })
    fc.assert(
      fc.property(result, ({ status, headers, body }) => {
        const decoded = decodeResult(new Uint8Array(encodeResult({ status, headers, body })))
        expect(decoded).toMatchObject({ status, headers })
        expect(Buffer.compare(decoded?.body ?? Buffer.alloc(1), body)).toBe(0)
      }),
    )
  })

  it.each([
    '',
    '\n',
    '{}\nbody',
    '[200]\n',
    '[99,[]]\n',
    '[200,[["a"]]]\n',
    '[200,[]]',
    '[200.5,[]]\n',
  ])('is none where it was not made by us: %j', (text) => {
    expect(decodeResult(Buffer.from(text))).toBeUndefined()
  })
})
