import { describe, expect, it } from 'vitest'
import { isKeyId } from '../../../src/base/compact-jws.js'
import { readKeySet } from '../../../src/verification/key-set/usable-keys.js'
import { verifyJws } from '../../../src/verification/token/signed-token.js'
import { makeSigningKey, shapeOfKey, tokenFrom } from '../../support/issuer/signing-keys.js'

const good = shapeOfKey('good', 2048)

/** What becomes of a member among good ones. */
function fateOf(member: unknown): unknown {
  const { keys, skipped } = readKeySet({ keys: [good, member] }, undefined)
  expect(keys.has('good')).toBe(true)
  return skipped[0] ?? keys.size
}

describe('a key is used', () => {
  it.each([
    ['with alg and use', { ...shapeOfKey('a', 2048), alg: 'RS256', use: 'sig' }],
    ['without alg and use', shapeOfKey('a', 2048)],
    ['with key_ops that hold verify', { ...shapeOfKey('a', 2048), key_ops: ['verify'] }],
    ['of 2049 bits', shapeOfKey('a', 2049)],
    ['of 4096 bits', shapeOfKey('a', 4096)],
    ['of 8192 bits', shapeOfKey('a', 8192)],
    ['with exponent 3', shapeOfKey('a', 2048, 'Aw')],
    ['with an exponent of 65 bits', shapeOfKey('a', 4096, 'AQAAAAAAAAAB')],
    ['with members that have no say', { ...good, kid: 'a', ext: false, x5c: ['x'], x5t: 1 }],
    ['with a kid of 256 characters', shapeOfKey('k'.repeat(256), 2048)],
    ['with a kid that objects inherit', shapeOfKey('__proto__', 2048)],
  ])('%s', (_name, member) => {
    expect(fateOf(member)).toBe(2)
  })
})

describe('a key is skipped, and the good one beside it stays', () => {
  const rsa = shapeOfKey('a', 2048)
  it.each([
    ['2047 bits', shapeOfKey('a', 2047), 'modulus_size'],
    ['8193 bits', shapeOfKey('a', 8193), 'modulus_size'],
    ['zeros before', { ...rsa, n: padWithZeros(shapeOfKey('a', 1024).n) }, 'modulus_size'],
    ['exponent 1', { ...rsa, e: 'AQ' }, 'exponent'],
    ['exponent 2', { ...rsa, e: 'Ag' }, 'exponent'],
    ['an even exponent', { ...rsa, e: 'AQAA' }, 'exponent'],
    ['exponent 0', { ...rsa, e: 'AA' }, 'malformed'],
    ['a number as exponent', { ...rsa, e: 65537 }, 'malformed'],
    ['no modulus', { ...rsa, n: undefined }, 'malformed'],
    ['a modulus in base64 with padding', { ...rsa, n: `${rsa.n}==` }, 'malformed'],
    ['a modulus that is no base64url', { ...rsa, n: `${rsa.n.slice(1)}+` }, 'malformed'],
    ['a modulus with a character too many', { ...rsa, n: `${rsa.n}AAA` }, 'malformed'],
    ['EC', { kty: 'EC', kid: 'a', crv: 'P-256', x: 'x', y: 'y' }, 'not_rsa'],
    ['no kty', { ...rsa, kty: undefined }, 'not_rsa'],
    ['kty in other case', { ...rsa, kty: 'rsa' }, 'not_rsa'],
    ['use enc', { ...rsa, use: 'enc' }, 'not_for_signatures'],
    ['key_ops without verify', { ...rsa, key_ops: ['encrypt'] }, 'not_for_signatures'],
    ['empty key_ops', { ...rsa, key_ops: [] }, 'not_for_signatures'],
    ['key_ops that is a string', { ...rsa, key_ops: 'verify' }, 'not_for_signatures'],
    ['PS256', { ...rsa, alg: 'PS256' }, 'other_algorithm'],
    ['alg null', { ...rsa, alg: null }, 'other_algorithm'],
  ])('%s', (_name, member, reason) => {
    expect(fateOf(JSON.parse(JSON.stringify(member)))).toEqual({ reason, keyId: 'a' })
  })

  it.each(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])('the private member %s', (name) => {
    expect(fateOf({ ...rsa, [name]: 'AQAB' })).toEqual({ reason: 'private', keyId: 'a' })
    expect(fateOf({ ...rsa, [name]: null })).toEqual({ reason: 'private', keyId: 'a' })
  })

  it.each([undefined, null, '', 1, {}, ['a'], 'a b', 'ä', 'a\n', 'k'.repeat(257)])(
    'the kid %j, which no token can have; it is not repeated to anybody',
    (kid) => {
      expect(fateOf({ ...rsa, kid })).toEqual({ reason: 'key_id_invalid' })
    },
  )

  it.each([null, 1, 'key', [], [good]])('the member %j', (member) => {
    expect(fateOf(member)).toEqual({ reason: 'malformed' })
  })
})

const repeated = shapeOfKey('a', 2048)
const withVerify = { ...repeated, key_ops: ['verify'] }

describe('a kid that occurs twice', () => {
  it.each([
    ['to the byte', repeated, { ...repeated }],
    ['with a zero before its modulus', repeated, { ...repeated, n: padWithZeros(repeated.n) }],
    [
      'with its use, its operations and members that have no say',
      { ...repeated, use: 'sig', alg: 'RS256', key_ops: ['sign', 'verify'], ext: true },
      { x5t: 'x', key_ops: ['sign', 'verify'], alg: 'RS256', use: 'sig', ...repeated },
    ],
  ])('is one key where it is the same one: %s', (_name, one, same) => {
    const { keys, skipped } = readKeySet({ keys: [one, good, same, one] }, undefined)
    expect([...keys.keys()]).toEqual(['a', 'good'])
    expect(skipped).toEqual([])
    expect(readKeySet({ keys: [same, one] }, keys).keys.get('a')).toBe(keys.get('a'))
  })

  it('keeps the fault of the key where it is the same one', () => {
    const { keys, skipped } = readKeySet(
      { keys: [good, ...Array(2).fill({ ...repeated, use: 'enc' })] },
      undefined,
    )
    expect([...keys.keys()]).toEqual(['good'])
    expect(skipped).toEqual(Array(2).fill({ reason: 'not_for_signatures', keyId: 'a' }))
  })

  it.each([
    ['two good keys', shapeOfKey('a', 2048)],
    ['another exponent', { ...repeated, e: 'Aw' }],
    ['another use', { ...repeated, use: 'enc' }],
    ['a use beside none', { ...repeated, use: 'sig' }],
    ['another algorithm', { ...repeated, alg: 'PS256' }],
    ['operations beside none', { ...repeated, key_ops: ['verify'] }],
    ['other operations', { ...repeated, key_ops: ['sign'] }, withVerify],
    ['more operations', { ...repeated, key_ops: ['verify', 'sign'] }, withVerify],
    ['a modulus that cannot be read', { ...repeated, n: `${repeated.n}=` }],
    ['its private half', { ...repeated, d: 'AQAB' }],
    ['one of them unusable', { kty: 'EC', kid: 'a' }],
    ['one of them malformed', { kid: 'a' }],
  ])('is not usable: %s', (_name, other, one: object = repeated) => {
    for (const pair of [
      [one, other],
      [other, one],
    ]) {
      const { keys, skipped } = readKeySet({ keys: [good, ...pair] }, undefined)
      expect([...keys.keys()]).toEqual(['good'])
      expect(skipped).toEqual(Array(2).fill({ reason: 'key_id_repeated', keyId: 'a' }))
    }
  })
})

describe('a document', () => {
  const MALFORMED = expect.objectContaining({ code: 'malformed' })

  it.each([null, 1, 'keys', [], {}, { keys: {} }, { keys: null }, { keys: 'a' }, { KEYS: [] }])(
    'is malformed: %j',
    (document) => {
      expect(() => readKeySet(document, undefined)).toThrow(MALFORMED)
    },
  )

  it('does not get its keys from a prototype', () => {
    const document: unknown = JSON.parse(`{"__proto__":{"keys":[${JSON.stringify(good)}]}}`)
    expect(() => readKeySet(document, undefined)).toThrow(MALFORMED)
  })

  it('may have 32 members, usable or not, and no more', () => {
    const members = Array.from({ length: 31 }, () => ({ kty: 'EC' }))
    expect(readKeySet({ keys: [good, ...members] }, undefined).keys.size).toBe(1)
    expect(() => readKeySet({ keys: [good, ...members, {}] }, undefined)).toThrow(
      expect.objectContaining({ code: 'too_many_keys' }),
    )
  })
})

describe('the object of a key', () => {
  const first = readKeySet({ keys: [good] }, undefined).keys

  it('stays with the key, whatever else changes about it', () => {
    const again = { ...good, alg: 'RS256', use: 'sig', n: good.n, x5t: 'new' }
    const { keys } = readKeySet({ keys: [shapeOfKey('new', 2048), again] }, first)
    expect(keys.get('good')).toBe(first.get('good'))
  })

  it('is another for another key under the same kid', () => {
    const { keys } = readKeySet({ keys: [shapeOfKey('good', 2048)] }, first)
    expect(keys.get('good')).not.toBe(first.get('good'))
  })

  it('stays where the modulus has zeros before it', () => {
    const padded = { ...good, n: padWithZeros(good.n) }
    expect(readKeySet({ keys: [padded] }, first).keys.get('good')).toBe(first.get('good'))
  })

  it('has the members that make the public key, and no others', () => {
    const { jwk } = makeSigningKey('mine')
    const { keys } = readKeySet({ keys: [{ ...jwk, ext: false, x5c: ['x'] }] }, undefined)
    const { n, e } = jwk
    expect(keys.get('mine')).toEqual({ kid: 'mine', jwk: { kty: 'RSA', n, e } })
    expect(Object.isFrozen(keys.get('mine')?.jwk)).toBe(true)
  })

  it.each([
    ['the largest exponent that a response can hold', { e: Buffer.alloc(40_000, 255) }],
    ['an even modulus', { n: Buffer.alloc(256, 0xfe) }],
  ])('verifies nothing, and is no fault of ours, with %s', async (_name, numbers) => {
    const [[name, bytes]] = Object.entries(numbers) as [[string, Buffer]]
    const member = { ...good, [name]: bytes.toString('base64url') }
    const key = readKeySet({ keys: [member] }, undefined).keys.get('good')
    if (key === undefined) throw new Error('the key is not usable')
    const token = tokenFrom(makeSigningKey('good'))
    expect(await verifyJws(token, key.jwk, 'RS256')).toBeUndefined()
  })
})

it('takes for a key id 1 to 256 visible ASCII characters', () => {
  expect(['a', '~!', 'd-1700000000000', 'k'.repeat(256)].every(isKeyId)).toBe(true)
  expect(['', ' ', 'a b', 'a\u007f', 'é', 'k'.repeat(257), 1, null].some(isKeyId)).toBe(false)
})

function padWithZeros(n: string): string {
  return Buffer.concat([Buffer.alloc(128), Buffer.from(n, 'base64url')]).toString('base64url')
}
