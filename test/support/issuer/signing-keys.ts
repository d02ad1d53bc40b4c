import { type KeyObject, randomBytes } from 'node:crypto'
import { compactToken, rs256 } from '../../../src/testing/issuer/compact-token.js'
import { publicJwk } from '../../../src/testing/issuer/issuer-keys.js'
import { knowToken } from '../secret-search/index.js'
import { takeKey } from './spare-keys.js'

/** A key as a key set publishes it. */
export interface PublicJwk {
  readonly kty: string
  readonly kid: string
  readonly n: string
  readonly e: string
  readonly [member: string]: unknown
}

export interface SigningKey {
  readonly kid: string
  readonly jwk: PublicJwk
  readonly privateKey: KeyObject
}

export function makeSigningKey(kid: string): SigningKey {
  const key = takeKey(kid)
  return { kid, privateKey: key.privateKey, jwk: publicJwk(key) as PublicJwk }
}

/** Returns an RSA public key of any size; its private key does not exist. */
export function shapeOfKey(kid: string, modulusBits: number, e = 'AQAB'): PublicJwk {
  const bytes = randomBytes(Math.ceil(modulusBits / 8))
  const topBits = ((modulusBits - 1) % 8) + 1
  bytes[0] = (bytes.readUInt8(0) & (2 ** topBits - 1)) | (2 ** (topBits - 1))
  bytes[bytes.length - 1] = bytes.readUInt8(bytes.length - 1) | 1
  return { kty: 'RSA', kid, n: bytes.toString('base64url'), e }
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** The policy that `tokenFrom` satisfies. */
export const POLICY = {
  issuer: 'https://core.example',
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
} as const

export interface TokenOptions {
  /** Milliseconds since the epoch. */
  readonly now?: number
  /** The `kid` in the header. Default: that of the key. */
  readonly kid?: string
  readonly claims?: object
}

/** Signs a token that a receiver with `POLICY` accepts for five minutes. */
export function tokenFrom(key: SigningKey, options: TokenOptions = {}): string {
  const { now = Date.now(), kid = key.kid, claims = {} } = options
  const iat = Math.floor(now / 1000)
  const { issuer: iss, audience: aud, source, tokenType: token_type } = POLICY
  const payload = { iss, aud, source, token_type, sub: 'billing', permissions: [], iat }
  const content = { ...payload, exp: iat + 300, ...claims }
  const token = compactToken({ alg: 'RS256', typ: 'JWT', kid }, content, rs256(key.privateKey))
  knowToken(token)
  return token
}

/** Replaces the `kid` of a token, which makes its signature invalid. */
export function withKid(token: string, kid: string): string {
  const [, payload, signature] = token.split('.')
  return `${encode({ alg: 'RS256', typ: 'JWT', kid })}.${payload}.${signature}`
}
