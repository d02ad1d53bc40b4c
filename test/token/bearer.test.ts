import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { headerValues } from '../../src/base/raw-headers.js'
import { readBearer } from '../../src/token/bearer.js'

const readOne = (value: string) => readBearer(['Host', 'x', 'Authorization', value])

describe('the values of a header', () => {
  test('are found in any case of its name, in their order', () => {
    const raw = ['A', '1', 'authorization', '2', 'AUTHORIZATION', '3', 'Authorization-x', '4']
    expect(headerValues(raw, 'authorization')).toEqual(['2', '3'])
    expect(headerValues([], 'authorization')).toEqual([])
  })

  test('are never taken for names', () => {
    expect(headerValues(['X', 'authorization', 'Y', 'authorization'], 'authorization')).toEqual([])
  })
})

describe('a bearer token', () => {
  test.each(['Bearer', 'bearer', 'BEARER'])('is what follows %s and one blank', (scheme) => {
    expect(readOne(`${scheme} a.b.c`)).toEqual({ ok: true, value: 'a.b.c' })
  })

  test('is missing where there is no header', () => {
    expect(readBearer(['Host', 'x'])).toMatchObject({ reason: 'credentials_missing' })
  })

  test('is one: two headers are refused, even when they are equal or empty', () => {
    for (const [one, other] of [
      ['Bearer a', 'Bearer a'],
      ['', ''],
      ['Bearer a', ''],
    ]) {
      const raw = ['authorization', one ?? '', 'Authorization', other ?? '']
      expect(readBearer(raw)).toMatchObject({ reason: 'authorization_repeated' })
    }
  })

  test.each(['', 'Bearer', 'Basic x', 'Bearerx', 'Bearer\tx', ' Bearer x', 'XBearer x', '\u0000'])(
    'is not in %j',
    (value) => {
      expect(readOne(value)).toMatchObject({ reason: 'authorization_malformed' })
    },
  )

  test('has at most 8192 characters', () => {
    expect(readOne(`Bearer ${'a'.repeat(8192)}`)).toMatchObject({ ok: true })
    expect(readOne(`Bearer ${'a'.repeat(8193)}`)).toMatchObject({ reason: 'token_too_long' })
  })

  test('is decided on for any header list, without an exception', () => {
    const headers = fc.array(
      fc.oneof(fc.constant('authorization'), fc.constant('Bearer x'), fc.string()),
    )
    fc.assert(
      fc.property(headers, (raw) => {
        expect(readBearer(raw)).toHaveProperty('ok')
      }),
    )
  })
})
