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
import { Refused } from './reply.js'
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
  // The core has the same text, although it also refuses 0.
  if (validitySeconds <= 0) throw new BadInput('validity must be greater than or equal to 0')
  const useStaticSigningKey = optionalField(body, 'useStaticSigningKey', isBoolean) ?? true
  return { algorithm, jwksDomain, payload, validitySeconds, useStaticSigningKey }
}

/** Whether the core can sign with it: RS256, in upper or lower case. */
export function isSupported(algorithm: string): boolean {
  return algorithm.toUpperCase() === 'RS256'
}

/**
 * Makes the token like the core: the caller's claims override those that the core adds.
 * @throws {Refused} if a claim is an integer of more than 64 bits
 */
export function mintToken(request: MintRequest, key: SigningKey, nowMs: number): string {
  const iat = Math.floor(nowMs / 1000)
  const exp = iat + request.validitySeconds
  const claims: Claims = { iat, exp, iss: request.jwksDomain, ...request.payload }
  const audience = audienceOf(claims.aud)
  if (audience === undefined) delete claims.aud
  else claims.aud = audience
  if (hasTooLargeInteger(claims)) {
    const types = 'Map, List, Boolean, Integer, Long, Double, String, Date, Instant, and Null'
    const text = `Claim values must only be of types ${types}`
    throw new Refused(500, `java.lang.IllegalArgumentException: ${text}`)
  }
  return signToken(claims, key)
}

/** The core drops values that are not strings, and replaces a list of one with its element. */
function audienceOf(aud: unknown): string | string[] | undefined {
  const audience = [aud].flat().filter(isString)
  return audience.length > 1 ? audience : audience[0]
}

const TOO_LARGE = 2 ** 63
/** From this size on, `JSON.stringify` writes an exponent, and the core reads a double. */
const DOUBLE_FROM = 1e21

function hasTooLargeInteger(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) {
    return Object.values(value).some(hasTooLargeInteger)
  }
  if (!Number.isInteger(value)) return false
  const size = Math.abs(Number(value))
  return size >= TOO_LARGE && size < DOUBLE_FROM
}
