import { generateKeyPairSync, verify } from 'node:crypto'
import { expect, it } from 'vitest'
import { compactToken, encodePart, rs256 } from '../../../src/testing/issuer/compact-token.js'

const decode = (segment = ''): string => Buffer.from(segment, 'base64url').toString('latin1')

it('a part is an object, its text, or its bytes', () => {
  expect(decode(encodePart({ a: 1 }))).toBe('{"a":1}')
  expect(decode(encodePart('{"a": 1e400}'))).toBe('{"a": 1e400}')
  expect(decode(encodePart(Uint8Array.of(0xff, 0)))).toBe('\u00ff\u0000')
})

it('a token is header, payload and the signature of both', () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const [header, payload, signature = ''] = compactToken(
    { alg: 'RS256' },
    'x',
    rs256(privateKey),
  ).split('.')
  expect(decode(header)).toBe('{"alg":"RS256"}')
  expect(decode(payload)).toBe('x')
  const signed = Buffer.from(`${header}.${payload}`)
  expect(verify('sha256', signed, publicKey, Buffer.from(signature, 'base64url'))).toBe(true)
})
