import { type CryptoKey, calculateJwkThumbprint, importJWK } from 'jose'
import { isRecord } from '../options.js'
import { FetchFailure } from './exchange.js'
import type { VerificationKey } from './key-set.js'

/** Why a member of the key set cannot be used: a closed list, for operators. */
export type SkipReason =
  | 'malformed'
  | 'key_id_invalid'
  | 'key_id_repeated'
  | 'not_rsa'
  | 'private'
  | 'not_for_signatures'
  | 'other_algorithm'
  | 'modulus_size'
  | 'exponent'

export interface SkippedKey {
  readonly reason: SkipReason
  readonly keyId?: string
}

export interface Screened {
  readonly keys: ReadonlyMap<string, VerificationKey>
  readonly skipped: readonly SkippedKey[]
}

const MAX_MEMBERS = 32
const MIN_MODULUS_BITS = 2048
const MAX_MODULUS_BITS = 8192
const MAX_KEY_ID_LENGTH = 256
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/** At most 256 visible ASCII characters (RFC 7517, section 4.5, leaves the form open). */
export const isKeyId = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= MAX_KEY_ID_LENGTH && /^[\x21-\x7e]+$/.test(value)

/**
 * Picks the usable keys of a JWKS document. Keys of `held` that are still there are kept as they
 * are, so that what was derived from them stays good.
 *
 * @throws FetchFailure when it is no key set, or too large a one.
 */
export async function screenKeySet(
  document: unknown,
  held: ReadonlyMap<string, VerificationKey> | undefined,
): Promise<Screened> {
  const members = isRecord(document) ? document['keys'] : undefined
  if (!Array.isArray(members)) throw new FetchFailure('malformed')
  if (members.length > MAX_MEMBERS) throw new FetchFailure('too_many_keys')
  const keys = new Map<string, VerificationKey>()
  const skipped: SkippedKey[] = []
  for (const member of members) {
    const key = await screenMember(member, members, held)
    if ('reason' in key) skipped.push(key)
    else keys.set(key.kid, key)
  }
  return { keys, skipped }
}

async function screenMember(
  member: unknown,
  members: readonly unknown[],
  held: ReadonlyMap<string, VerificationKey> | undefined,
): Promise<VerificationKey | SkippedKey> {
  if (!isRecord(member)) return { reason: 'malformed' }
  const { kid, n, e } = member
  if (!isKeyId(kid)) return { reason: 'key_id_invalid' }
  const reason = faultOfMember(member, members)
  if (reason !== undefined) return { reason, keyId: kid }
  // Only what makes the public key: `ext`, `x5c` and the like have no say in how it is used.
  const jwk = { kty: 'RSA', n: String(n), e: String(e) }
  try {
    const thumbprint = await calculateJwkThumbprint(jwk)
    const known = held?.get(kid)
    if (known?.thumbprint === thumbprint) return known
    const cryptoKey = (await importJWK(jwk, 'RS256')) as CryptoKey
    return Object.freeze({ kid, thumbprint, cryptoKey })
  } catch {
    return { reason: 'malformed', keyId: kid }
  }
}

function faultOfMember(
  member: Record<string, unknown>,
  members: readonly unknown[],
): SkipReason | undefined {
  const { kid, kty, use, alg, n, e, key_ops: operations } = member
  if (members.filter((other) => isRecord(other) && other['kid'] === kid).length > 1) {
    return 'key_id_repeated'
  }
  if (kty !== 'RSA') return 'not_rsa'
  if (PRIVATE_MEMBERS.some((name) => Object.hasOwn(member, name))) return 'private'
  if (alg !== undefined && alg !== 'RS256') return 'other_algorithm'
  if (use !== undefined && use !== 'sig') return 'not_for_signatures'
  if (operations !== undefined && !allowsVerify(operations)) return 'not_for_signatures'
  const modulus = unsignedInteger(n)
  const exponent = unsignedInteger(e)
  if (modulus === undefined || exponent === undefined) return 'malformed'
  const bits = bitLength(modulus)
  if (bits < MIN_MODULUS_BITS || bits > MAX_MODULUS_BITS) return 'modulus_size'
  return isOddFromThree(exponent) ? undefined : 'exponent'
}

const allowsVerify = (operations: unknown): boolean =>
  Array.isArray(operations) && operations.includes('verify')

/** Base64urlUInt (RFC 7518, section 2), without its leading zero octets. */
function unsignedInteger(value: unknown): Buffer | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9_-]+$/.test(value)) return undefined
  const octets = Buffer.from(value, 'base64url')
  const first = octets.findIndex((octet) => octet !== 0)
  return first === -1 ? undefined : octets.subarray(first)
}

const bitLength = (octets: Buffer): number => octets.length * 8 - (Math.clz32(octets[0] ?? 0) - 24)

function isOddFromThree(octets: Buffer): boolean {
  const last = octets[octets.length - 1] ?? 0
  return last % 2 === 1 && (octets.length > 1 || last >= 3)
}
