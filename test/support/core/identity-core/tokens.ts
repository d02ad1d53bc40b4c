import { createPublicKey, type KeyObject, randomUUID } from 'node:crypto'
import { Refused } from '../../../../src/testing/core/mint.js'
import { compactToken, type Part, rs256 } from '../../../../src/testing/issuer/compact-token.js'
import { takeKey } from '../../issuer/spare-keys.js'
import {
  BadInput,
  field,
  isBoolean,
  isInteger,
  isObject,
  isString,
  optionalField,
  parseObject,
} from './input.js'
import type { Route } from './router.js'

export interface SigningKey {
  /** `d-<created ms>` of a dynamic key, `s-<uuid>` of a static one. */
  readonly kid: string
  readonly privateKey: KeyObject
}

/** The keys of a core, which are made when they are first needed. */
export interface KeyRing {
  /** The newest dynamic key, or the static one. */
  signingKey(kind: 'dynamic' | 'static'): SigningKey
  /** Dynamic keys, newest first, then the static one. */
  published(): readonly SigningKey[]
  /** Makes a dynamic key that signs from now on, and returns its id; the earlier keys stay published. */
  rotate(): string
}

export function createKeyRing(clock: () => number): KeyRing {
  const dynamic: SigningKey[] = []
  let fixed: SigningKey | undefined
  let newestMs = 0

  function addDynamicKey(): SigningKey {
    // The id is the creation time: two keys of the same millisecond would share it.
    newestMs = Math.max(clock(), newestMs + 1)
    const key = takeKey(`d-${newestMs}`)
    dynamic.unshift(key)
    return key
  }

  function signingKey(kind: 'dynamic' | 'static'): SigningKey {
    if (kind === 'dynamic') return dynamic[0] ?? addDynamicKey()
    fixed ??= takeKey(`s-${randomUUID()}`)
    return fixed
  }

  return {
    signingKey,
    published() {
      signingKey('dynamic')
      return [...dynamic, signingKey('static')]
    },
    rotate() {
      signingKey('dynamic')
      return addDynamicKey().kid
    },
  }
}

function toPublicJwk({ kid, privateKey }: SigningKey) {
  const { n = '', e = '' } = createPublicKey(privateKey).export({ format: 'jwk' })
  return { kty: 'RSA', kid, n, e, alg: 'RS256', use: 'sig' }
}

/** Nearly a week, like a core whose key is new. */
const CACHE_CONTROL = 'max-age=604740, must-revalidate'

/** The key set. The core and the API domain publish it at different paths. */
export function keySetRoute(keyRing: KeyRing): Route {
  const answer = () => {
    const keys = keyRing.published().map(toPublicJwk)
    return { status: 200, headers: { 'cache-control': CACHE_CONTROL }, body: { keys } }
  }
  return { isPublic: true, isOfEachVersion: true, tenants: 'served', answers: { GET: answer } }
}

/** `/recipe/jwt/jwks`: the key set for those with an API key. */
export function ownKeysRoute(keyRing: KeyRing): Route {
  const answer = () => {
    const keys = keyRing.published().map(toPublicJwk)
    return { status: 200, body: { keys, status: 'OK' } }
  }
  return { tenants: 'refused', answers: { GET: answer } }
}

/** Returns the body of the answer to `POST /recipe/jwt`. */
export function mint(text: string, keyRing: KeyRing, nowMs: number): object {
  const asked = parseMintRequest(text)
  if (!isSupported(asked.algorithm)) return { status: 'UNSUPPORTED_ALGORITHM_ERROR' }
  const key = keyRing.signingKey(asked.useStaticSigningKey ? 'static' : 'dynamic')
  return { status: 'OK', jwt: mintToken(asked, key, nowMs) }
}

interface MintRequest {
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
function parseMintRequest(text: string): MintRequest {
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
function isSupported(algorithm: string): boolean {
  return algorithm.toUpperCase() === 'RS256'
}

/**
 * Makes the token like the core: the caller's claims override those that the core adds.
 * @throws {Refused} if a claim is an integer of more than 64 bits
 */
function mintToken(request: MintRequest, key: SigningKey, nowMs: number): string {
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

/** Returns a token in compact form. The core writes the members of the header in this order. */
export function signToken(claims: Part, key: SigningKey, more: object = {}): string {
  const header = { kid: key.kid, typ: 'JWT', ...more, alg: 'RS256' }
  return compactToken(header, claims, rs256(key.privateKey))
}
