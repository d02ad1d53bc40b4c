import type { CryptoKey } from 'jose'
import { calculateJwkThumbprint } from 'jose/jwk/thumbprint'
import { importJWK } from 'jose/key/import'
import {
  PRIVATE_MEMBERS,
  readJsonObject,
  readJsonSegment,
  segmentsOf,
} from '../../base/compact-jws.js'
import { isObject } from '../../base/options.js'
import { hash } from '../../base/supported-node.js'
import { verifyJws } from '../token/signed-token.js'
import { type BaseUrl, normalizeHttpUri, pathOfTarget, pathUnder } from './http-uri.js'
import type { Confirmation } from './sender-constraint.js'

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
export async function checkProof(
  text: string,
  confirmation: Confirmation,
  request: ProvedRequest,
): Promise<Proof | ProofMember> {
  const segments = text.length > MAX_PROOF_LENGTH ? undefined : segmentsOf(text)
  const header = segments && readJsonSegment(segments.header)?.members
  if (segments === undefined || header === undefined) return 'form'
  if (header['typ'] !== 'dpop+jwt') return 'typ'
  if (header['alg'] !== 'ES256') return 'alg'
  if (Object.hasOwn(header, 'crit')) return 'crit'
  const key = await keyIn(header['jwk'], confirmation)
  if (key === undefined) return 'jwk'
  const signed = await verifyJws(text, key, 'ES256')
  if (signed === undefined) return 'signature'
  const payload = readJsonObject(signed)?.members
  return payload === undefined ? 'form' : checkPayload(payload, confirmation, request)
}

type Members = Readonly<Record<string, unknown>>

/** A coordinate has 32 bytes (RFC 7518, section 6.2.1.2): 43 characters, of which the last has four bits. */
const COORDINATE = /^[\w-]{42}[AEIMQUYcgkosw048]$/

interface ImportedKey {
  readonly x: string
  readonly y: string
  readonly key: CryptoKey
}

/** The imported keys, by the binding of their token. A key lives as long as the token cache holds the binding. */
const importedKeys = new WeakMap<Confirmation, ImportedKey>()

/** The public key that the token is bound to, if the proof has it. */
async function keyIn(jwk: unknown, confirmation: Confirmation): Promise<CryptoKey | undefined> {
  if (!isObject(jwk) || PRIVATE_MEMBERS.some((name) => Object.hasOwn(jwk, name))) return undefined
  const { kty, crv, x, y } = jwk
  if (kty !== 'EC' || crv !== 'P-256' || !isCoordinate(x) || !isCoordinate(y)) return undefined
  const known = importedKeys.get(confirmation)
  if (known !== undefined) return known.x === x && known.y === y ? known.key : undefined
  const publicKey = { kty, crv, x, y } as const
  if ((await calculateJwkThumbprint(publicKey)) !== confirmation.thumbprint) return undefined
  const key = await importKey(publicKey)
  if (key !== undefined) importedKeys.set(confirmation, { x, y, key })
  return key
}

const isCoordinate = (value: unknown): value is string =>
  typeof value === 'string' && COORDINATE.test(value)

interface P256Jwk {
  readonly kty: 'EC'
  readonly crv: 'P-256'
  readonly x: string
  readonly y: string
}

/** `undefined` if the point is not on the curve. */
async function importKey(jwk: P256Jwk): Promise<CryptoKey | undefined> {
  try {
    return (await importJWK({ ...jwk }, 'ES256')) as CryptoKey
  } catch (error) {
    if (error instanceof DOMException && error.name === 'DataError') return undefined
    throw error
  }
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
