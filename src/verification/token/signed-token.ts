import type { CryptoKey } from 'jose'
import { JWSSignatureVerificationFailed } from 'jose/errors'
import { compactVerify } from 'jose/jws/compact/verify'
import {
  isKeyId,
  type JsonObject,
  readHeader,
  readJsonObject,
  readJsonSegment,
  segmentsOf,
} from '../../base/compact-jws.js'
import { allow, type Decision, type Denial, deny } from '../../base/decision/reason.js'
import {
  type FoundKey,
  isSameKey,
  type KeySource,
  NOT_LOOKED_UP,
  type RsaJwk,
  type VerificationKey,
} from '../key-set/key-set.js'

/** A token whose form and header have been checked, and nothing else. */
export interface ParsedToken {
  readonly token: string
  readonly kid: string
  /** The `typ` of the header, of any type. */
  readonly typ: unknown
  /** The payload, if it had to be read before it was verified. */
  readonly payload?: JsonObject
}

/**
 * `version` marks session tokens. Every other parameter here would change how the token is read, or which key is used
 * (RFC 7515, section 4.1; RFC 7797).
 */
const FORBIDDEN_PARAMETERS = ['version', 'crit', 'b64', 'jwk', 'jku', 'x5c', 'x5u']

/** Checks form and header; never the payload. */
export function parseToken(token: string): Decision<ParsedToken> {
  const segments = segmentsOf(token)
  if (segments === undefined) return deny('token_malformed')
  const header = readHeader(segments.header)
  if (header === undefined) return deny('token_malformed')
  if (FORBIDDEN_PARAMETERS.some((name) => Object.hasOwn(header, name))) {
    return deny('header_parameter_forbidden')
  }
  if (header['alg'] !== 'RS256') return deny('algorithm_not_allowed')
  const { kid, typ } = header
  return isKeyId(kid) ? allow({ token, kid, typ }) : deny('key_id_invalid')
}

/** Reads the payload before it is verified: only to choose the policy that verifies it. */
export function withPayload(parsed: ParsedToken): Decision<Required<ParsedToken>> {
  const [, segment = ''] = parsed.token.split('.', 2)
  const payload = readJsonSegment(segment)
  return payload === undefined ? deny('token_malformed') : allow({ ...parsed, payload })
}

/** The verified payload, and its key. */
export interface VerifiedToken {
  readonly key: VerificationKey
  /** As parsed: of any type, with any member names, an own `__proto__` included. */
  readonly payload: JsonObject
}

type UnverifiedToken = Pick<ParsedToken, 'token' | 'kid' | 'payload'>

/**
 * Verifies the signature with the key that `kid` selects, and reads the payload only then (RFC 7515,
 * section 5.2). Decides on an unknown key at once unless the key set has to be fetched. Rejects with
 * `Unavailable` if it cannot be fetched.
 */
export function verifySignature(
  token: UnverifiedToken,
  keySource: KeySource,
): Denial | Promise<Decision<VerifiedToken>> {
  const found = keySource.find(token.kid)
  return isKeyless(found) ? withoutKey(found) : verifyWith(found, token, keySource)
}

type Keyless = Exclude<FoundKey, VerificationKey>

const isKeyless = (found: FoundKey | Promise<FoundKey>): found is Keyless =>
  found === undefined || found === NOT_LOOKED_UP

const withoutKey = (found: Keyless): Denial =>
  deny(found === NOT_LOOKED_UP ? 'key_not_looked_up' : 'key_unknown')

async function verifyWith(
  found: VerificationKey | Promise<FoundKey>,
  { token, kid, payload: unverified }: UnverifiedToken,
  keySource: KeySource,
): Promise<Decision<VerifiedToken>> {
  const candidate = 'kid' in found ? found : await found
  if (isKeyless(candidate)) return withoutKey(candidate)
  const signed = await verifyJws(token, candidate.jwk, 'RS256')
  if (signed === undefined) return deny('signature_invalid', { keyId: kid })
  // The set may have been replaced meanwhile: a key that is no longer in it verifies nothing.
  const key = keySource.current(kid) ?? (await keySource.find(kid))
  if (isKeyless(key)) return withoutKey(key)
  if (!isSameKey(key, candidate)) return deny('key_unknown')
  // `parseToken` refuses base64url that is not canonical, so a payload read earlier is what the key has signed.
  const payload = unverified ?? readJsonObject(signed)
  if (payload === undefined) return deny('token_malformed', { keyId: kid })
  return allow({ key, payload })
}

/**
 * Verifies a compact JWS whose form and header have been checked. `jose` imports a JWK when it first verifies, and
 * keeps the key for as long as the object lives; the object must be frozen.
 *
 * @returns the payload, or `undefined` if the key has not signed it.
 * @throws whatever made the verification impossible, if it is not the JWS.
 */
export async function verifyJws(
  jws: string,
  key: RsaJwk | CryptoKey,
  algorithm: 'RS256' | 'ES256',
): Promise<Uint8Array | undefined> {
  try {
    const { payload } = await compactVerify(jws, key, { algorithms: [algorithm] })
    return payload
  } catch (error) {
    if (!(error instanceof JWSSignatureVerificationFailed)) throw error
    // `jose` has the same error for a runtime that throws, which is then its cause.
    if (error.cause !== undefined) throw error.cause
    return undefined
  }
}
