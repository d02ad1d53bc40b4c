import { createPublicKey, verify } from 'node:crypto'
import { BadInput, isObject, type JsonObject } from './json-input.js'
import { signToken } from './sign-token.js'
import type { SigningKey } from './signing-key.js'

/** The core's own claims in a session token; the SDK's payload is next to them. */
export interface SessionClaims {
  readonly sub: string
  /** Seconds since the epoch, like `iat`. */
  readonly exp: number
  readonly iat: number
  readonly tId: string
  readonly rsub: string
  readonly sessionHandle: string
  readonly refreshTokenHash1: string
  readonly parentRefreshTokenHash1: string | null
  readonly antiCsrfToken: string | null
}

/** The header of the core's interface since 4.0. No token of `POST /recipe/jwt` has this member. */
const SESSION_HEADER = { version: '5' }

/** @throws {BadInput} if the payload has one of the core's own claims */
export function makeSessionToken(
  claims: SessionClaims,
  payload: JsonObject,
  key: SigningKey,
): string {
  if (Object.keys(payload).some((name) => Object.hasOwn(claims, name))) {
    throw new BadInput('The user payload contains protected field')
  }
  return signToken({ ...claims, ...payload }, key, SESSION_HEADER)
}

/** Returns the claims of a session token that the core signed, even if it has expired. */
export function readSessionToken(
  token: string,
  keyOf: (kid: string) => SigningKey | undefined,
): SessionClaims | undefined {
  const [header = '', payload = '', signature = ''] = token.split('.')
  const { kid, version } = decode(header)
  const key = version === SESSION_HEADER.version ? keyOf(String(kid)) : undefined
  if (key === undefined) return undefined
  const signed = Buffer.from(`${header}.${payload}`)
  const bytes = Buffer.from(signature, 'base64url')
  if (!verify('sha256', signed, createPublicKey(key.privateKey), bytes)) return undefined
  // Only the core signs headers of this kind, and only over these claims.
  return decode(payload) as JsonObject & SessionClaims
}

function decode(segment: string): JsonObject {
  try {
    const value: unknown = JSON.parse(Buffer.from(segment, 'base64url').toString())
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
