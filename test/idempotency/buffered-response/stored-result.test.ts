import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeResult,
  encodeResult,
} from '../../../src/idempotency/buffered-response/stored-result.js'

/** What a header value can hold. */
const latin1 = fc.stringMatching(/^[\x20-\x7e\x80-\xff]*$/)

describe('A stored result', () => {
  it('comes back as it went in', () => {
    const result = fc.record({
      status: fc.integer({ min: 200, max: 999 }),
      headers: fc.array(fc.tuple(fc.stringMatching(/^[a-z]{1,9}-$/), latin1)),
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
    '{}\nbody',
    '[200]\n',
    '[99,[],0]\n',
    '[200.5,[],0]\n',
    '[200,[["a"]],0]\n',
    '[200,[],0]',
    '[101,[],0]\n',
    '[200,[],3]\nbody',
    '[200,[["a","b\\r\\nc: d"]],0]\n',
    '[200,[["a","\\u0100"]],0]\n',
    '[200,[["a b","c"]],0]\n',
    '[200,[["transfer-encoding","chunked"]],0]\n',
    '[200,[["set-cookie","a=b"]],0]\n',
  ])('is none where it was not made by us: %j', (text) => {
    expect(decodeResult(Buffer.from(text))).toBeUndefined()
  })
})
