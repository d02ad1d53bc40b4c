import { isKeyId, PRIVATE_MEMBERS } from '../../base/compact-jws.js'
import type { SkipReason } from '../../base/decision/key-set-event.js'
import { isObject } from '../../base/options.js'
import { FetchFailure } from './fetch-key-set.js'
import { isSameKey, type VerificationKey } from './key-set.js'

export interface SkippedKey {
  readonly reason: SkipReason
  readonly keyId?: string
}

export interface UsableKeys {
  readonly keys: ReadonlyMap<string, VerificationKey>
  readonly skipped: readonly SkippedKey[]
}

const MAX_MEMBERS = 32
const MIN_MODULUS_BITS = 2048
const MAX_MODULUS_BITS = 8192

/**
 * Returns the usable keys of a JWKS document. A key that `current` has unchanged keeps its object, by
 * which cached tokens know that it is still in the set.
 *
 * @throws FetchFailure if the document is not a key set or has too many members.
 */
export function readKeySet(
  document: unknown,
  current: ReadonlyMap<string, VerificationKey> | undefined,
): UsableKeys {
  const members = isObject(document) ? document['keys'] : undefined
  if (!Array.isArray(members)) throw new FetchFailure('malformed')
  if (members.length > MAX_MEMBERS) throw new FetchFailure('too_many_keys')
  const keys = new Map<string, VerificationKey>()
  const skipped: SkippedKey[] = []
  for (const member of members) {
    const key = readMember(member, members, current)
    if ('reason' in key) skipped.push(key)
    else keys.set(key.kid, key)
  }
  return { keys, skipped }
}

function readMember(
  member: unknown,
  members: readonly unknown[],
  current: ReadonlyMap<string, VerificationKey> | undefined,
): VerificationKey | SkippedKey {
  if (!isObject(member)) return { reason: 'malformed' }
  const { kid } = member
  if (!isKeyId(kid)) return { reason: 'key_id_invalid' }
  const isRepeated = members.some(
    (other) => isObject(other) && other['kid'] === kid && !isRepetition(other, member),
  )
  const reason = isRepeated ? 'key_id_repeated' : useProblem(member)
  if (reason !== undefined) return { reason, keyId: kid }
  const modulus = unsignedInteger(member['n'])
  const exponent = unsignedInteger(member['e'])
  if (modulus === undefined || exponent === undefined) return { reason: 'malformed', keyId: kid }
  const problem = numberProblem(modulus, exponent)
  if (problem !== undefined) return { reason: problem, keyId: kid }
  // Only the members that make the public key: others, such as `ext` and `x5c`, must have no effect.
  const numbers = { n: modulus.toString('base64url'), e: exponent.toString('base64url') }
  const jwk = Object.freeze({ kty: 'RSA', ...numbers } as const)
  const key = Object.freeze({ kid, jwk })
  const existing = current?.get(kid)
  return existing !== undefined && isSameKey(existing, key) ? existing : key
}

/** Whether both are one key for the same use; members that concern neither key nor use may differ. */
function isRepetition(one: Record<string, unknown>, other: Record<string, unknown>): boolean {
  return (
    ['kty', 'use', 'alg'].every((name) => one[name] === other[name]) &&
    isSameList(one['key_ops'], other['key_ops']) &&
    PRIVATE_MEMBERS.every((name) => Object.hasOwn(one, name) === Object.hasOwn(other, name)) &&
    ['n', 'e'].every((name) => isSameInteger(one[name], other[name]))
  )
}

const isSameList = (one: unknown, other: unknown): boolean =>
  Array.isArray(one) && Array.isArray(other)
    ? one.length === other.length && one.every((value, index) => value === other[index])
    : one === other

function isSameInteger(one: unknown, other: unknown): boolean {
  if (one === other) return true
  const number = unsignedInteger(one)
  return number !== undefined && unsignedInteger(other)?.equals(number) === true
}

function useProblem(member: Record<string, unknown>): SkipReason | undefined {
  const { kty, use, alg, key_ops: operations } = member
  if (kty !== 'RSA') return 'not_rsa'
  if (PRIVATE_MEMBERS.some((name) => Object.hasOwn(member, name))) return 'private'
  if (alg !== undefined && alg !== 'RS256') return 'other_algorithm'
  if (use !== undefined && use !== 'sig') return 'not_for_signatures'
  if (operations !== undefined && !allowsVerify(operations)) return 'not_for_signatures'
  return undefined
}

const allowsVerify = (operations: unknown): boolean =>
  Array.isArray(operations) && operations.includes('verify')

function numberProblem(modulus: Buffer, exponent: Buffer): SkipReason | undefined {
  const bits = bitLength(modulus)
  if (bits < MIN_MODULUS_BITS || bits > MAX_MODULUS_BITS) return 'modulus_size'
  return isOddFromThree(exponent) ? undefined : 'exponent'
}

/** Decodes a Base64urlUInt (RFC 7518, section 2); drops leading zeros, which some libraries write. */
function unsignedInteger(value: unknown): Buffer | undefined {
  if (typeof value !== 'string') return undefined
  const bytes = Buffer.from(value, 'base64url')
  if (bytes.toString('base64url') !== value) return undefined
  const first = bytes.findIndex((byte) => byte !== 0)
  return first === -1 ? undefined : bytes.subarray(first)
}

const bitLength = (bytes: Buffer): number => bytes.length * 8 - (Math.clz32(bytes[0] ?? 0) - 24)

function isOddFromThree(bytes: Buffer): boolean {
  const last = bytes[bytes.length - 1] ?? 0
  return last % 2 === 1 && (bytes.length > 1 || last >= 3)
}
