import {
  BadInput,
  field,
  isBoolean,
  isInteger,
  isObject,
  isString,
  optionalField,
  parseObject,
} from './json-input.js'
import { signToken } from './sign-token.js'
import type { SigningKey } from './signing-key.js'

export interface MintRequest {
  readonly algorithm: string
  readonly jwksDomain: string
  readonly payload: Record<string, unknown>
  readonly validitySeconds: number
  readonly useStaticSigningKey: boolean
}

interface Claims {
  [name: string]: unknown
  aud?: unknown
}

/**
 * Reads the body of `POST /recipe/jwt`, field by field in the core's order.
 * @throws {BadInput}
 */
export function parseMintRequest(text: string): MintRequest {
  const body = parseObject(text)
  const algorithm = field(body, 'algorithm', isString)
  const jwksDomain = field(body, 'jwksDomain', isString)
  const payload = field(body, 'payload', isObject)
  const validitySeconds = field(body, 'validity', isInteger)
  // The text is the core's, although 0 is refused too.
  if (validitySeconds <= 0) throw new BadInput('validity must be greater than or equal to 0')
  const useStaticSigningKey = optionalField(body, 'useStaticSigningKey', isBoolean) ?? true
  return { algorithm, jwksDomain, payload, validitySeconds, useStaticSigningKey }
}

/** Whether the core can sign with it: RS256, in any case. */
export function isSupported(algorithm: string): boolean {
  return algorithm.toUpperCase() === 'RS256'
}

/** The token as the core makes it: the caller's claims win over those that the core adds. */
export function mintToken(request: MintRequest, key: SigningKey, nowMs: number): string {
  const iat = Math.floor(nowMs / 1000)
  const exp = iat + request.validitySeconds
  const claims: Claims = { iat, exp, iss: request.jwksDomain, ...request.payload }
  if (Array.isArray(claims.aud) && claims.aud.length === 1) claims.aud = claims.aud[0]
  return signToken(claims, key)
}
