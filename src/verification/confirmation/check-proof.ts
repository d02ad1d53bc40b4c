import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { readJsonSegment, segmentsOf } from '../../base/compact-jws.js'
import { type P256Key, PRIVATE_MEMBERS, thumbprintOf } from '../../base/jwk.js'
import { isObject } from '../../base/options.js'
import { hash } from '../../base/supported-node.js'
import type { Confirmation } from './confirmation.js'
import { type BaseUrl, normalizeHttpUri, pathOfTarget, pathUnder } from './http-uri.js'

/** The request that a proof must be for. */
export interface ProvedRequest {
  readonly token: string
  readonly method: string
  /** The request target. */
  readonly url: string
  readonly baseUrls: readonly BaseUrl[]
  /** Seconds since the epoch. */
  readonly now: number
}

/** Identifies a proof, so that it can be used once. */
export interface Proof {
  /** The thumbprint of its key. */
  readonly thumbprint: string
  readonly jti: string
  /** Seconds since the epoch until which the proof is accepted. */
  readonly acceptableUntil: number
}

/** The part of a proof that is missing or wrong. `form`: it is not a JWS with JSON objects as header and payload. */
export type ProofMember =
  | 'form'
  | 'typ'
  | 'alg'
  | 'crit'
  | 'jwk'
  | 'signature'
  | 'htm'
  | 'htu'
  | 'iat'
  | 'jti'
  | 'ath'

const MAX_PROOF_LENGTH = 4096
const MAX_AGE_SECONDS = 60
const MAX_AHEAD_SECONDS = 30
const MAX_ID_LENGTH = 256

/**
 * Checks a DPoP proof (RFC 9449, section 4.3) of the key that a token is bound to. Returns the proof, or the
 * member that is wrong. The payload is read only after the signature is verified.
 */
export function checkProof(
  text: string,
  confirmation: Confirmation,
  request: ProvedRequest,
): Proof | ProofMember {
  const segments = text.length > MAX_PROOF_LENGTH ? undefined : segmentsOf(text)
  const header = segments && readJsonSegment(segments.header)?.members
  if (segments === undefined || header === undefined) return 'form'
  if (header['typ'] !== 'dpop+jwt') return 'typ'
  if (header['alg'] !== 'ES256') return 'alg'
  if (Object.hasOwn(header, 'crit')) return 'crit'
  const key = keyIn(header['jwk'], confirmation)
  if (key === undefined) return 'jwk'
  const input = Buffer.from(`${segments.header}.${segments.payload}`, 'latin1')
  const signature = derSignature(Buffer.from(segments.signature, 'base64url'))
  // ES256 is ECDSA with SHA-256 (RFC 7518, section 3.4).
  if (signature === undefined || !verify('sha256', input, key, signature)) return 'signature'
  const payload = readJsonSegment(segments.payload)?.members
  return payload === undefined ? 'form' : checkPayload(payload, confirmation, request)
}

type Members = Readonly<Record<string, unknown>>

/** A coordinate has 32 bytes (RFC 7518, section 6.2.1.2): 43 characters, of which the last has four bits. */
const COORDINATE = /^[\w-]{42}[AEIMQUYcgkosw048]$/

/** The imported keys, by the binding of their token. A key lives as long as the token cache holds the binding. */
const importedKeys = new WeakMap<Confirmation, KeyObject>()

/** The public key that the token is bound to, if the proof has it. */
function keyIn(jwk: unknown, confirmation: Confirmation): KeyObject | undefined {
  if (!isObject(jwk) || PRIVATE_MEMBERS.some((name) => Object.hasOwn(jwk, name))) return undefined
  const { kty, crv, x, y } = jwk
  if (kty !== 'EC' || crv !== 'P-256' || !isCoordinate(x) || !isCoordinate(y)) return undefined
  const publicKey: P256Key = { kty, crv, x, y }
  if (thumbprintOf(publicKey) !== confirmation.thumbprint) return undefined
  const known = importedKeys.get(confirmation)
  if (known !== undefined) return known
  const key = importKey(publicKey)
  if (key !== undefined) importedKeys.set(confirmation, key)
  return key
}

const isCoordinate = (value: unknown): value is string =>
  typeof value === 'string' && COORDINATE.test(value)

/** `undefined` if the point is not on the curve. */
function importKey(key: P256Key): KeyObject | undefined {
  try {
    return createPublicKey({ key: { ...key }, format: 'jwk' })
  } catch {
    return undefined
  }
}

const NUMBER_BYTES = 32
const SEQUENCE = 0x30
const INTEGER = 0x02

/**
 * The DER form (RFC 3279, section 2.2.3) of a signature of two numbers side by side. Node would convert it,
 * too, with the option `dsaEncoding`, but the whole verification then takes 1.5 times as long. `undefined` if
 * the signature does not have the length of two numbers.
 */
function derSignature(signature: Buffer): Buffer | undefined {
  if (signature.length !== 2 * NUMBER_BYTES) return undefined
  const numbers = [signature.subarray(0, NUMBER_BYTES), signature.subarray(NUMBER_BYTES)]
  const content = numbers.flatMap((number) => derInteger(number))
  return Buffer.from([SEQUENCE, content.length, ...content])
}

/** In the shortest form: the first byte is zero only if the number would look negative without it. */
function derInteger(number: Buffer): number[] {
  const first = number.findIndex((byte) => byte !== 0)
  const bytes = [...number.subarray(first === -1 ? NUMBER_BYTES - 1 : first)]
  if ((bytes[0] ?? 0) >= 0x80) bytes.unshift(0)
  return [INTEGER, bytes.length, ...bytes]
}

function checkPayload(
  { htm, htu, iat, jti, ath }: Members,
  { thumbprint }: Confirmation,
  request: ProvedRequest,
): Proof | ProofMember {
  const { token, method, now } = request
  if (htm !== method) return 'htm'
  if (typeof htu !== 'string' || !isAddressed(htu, request)) return 'htu'
  if (typeof iat !== 'number' || !isRecent(iat, now)) return 'iat'
  if (typeof jti !== 'string' || jti === '' || jti.length > MAX_ID_LENGTH) return 'jti'
  if (ath !== hash('sha256', token, 'base64url')) return 'ath'
  return { thumbprint, jti, acceptableUntil: iat + MAX_AGE_SECONDS }
}

const isRecent = (iat: number, now: number): boolean =>
  now <= iat + MAX_AGE_SECONDS && iat <= now + MAX_AHEAD_SECONDS

/** Whether the URI is that of the request under one of the base URLs. */
function isAddressed(htu: string, { method, url, baseUrls }: ProvedRequest): boolean {
  const uri = normalizeHttpUri(htu)
  const path = pathOfTarget(method, url)
  if (uri === undefined || path === undefined) return false
  return baseUrls.some((base) => base.origin === uri.origin && pathUnder(base, path) === uri.path)
}
