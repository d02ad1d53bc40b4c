import { type KeyObject, verify } from 'node:crypto'
import {
  isKeyId,
  type JsonObject,
  readHeader,
  readJsonSegment,
  segmentsOf,
} from '../../base/compact-jws.js'
import { allow, type Decision, type Denial, deny } from '../../base/decision/reason.js'
import type { KeySource, VerificationKey } from '../key-set/key-set.js'

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
  const payload = readPayload(parsed.token)
  return payload === undefined ? deny('token_malformed') : allow({ ...parsed, payload })
}

function readPayload(token: string): JsonObject | undefined {
  const [, segment = ''] = token.split('.', 2)
  return readJsonSegment(segment)
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
 * section 5.2). Refuses an unknown key at once unless the key set has to be fetched. Rejects with
 * `Unavailable` if it cannot be fetched.
 */
export function verifySignature(
  token: UnverifiedToken,
  keySource: KeySource,
): Denial | Promise<Decision<VerifiedToken>> {
  const found = keySource.find(token.kid)
  return found === undefined ? deny('key_unknown') : verifyWith(found, token, keySource)
}

async function verifyWith(
  found: VerificationKey | Promise<VerificationKey | undefined>,
  { token, kid, payload: unverified }: UnverifiedToken,
  keySource: KeySource,
): Promise<Decision<VerifiedToken>> {
  const candidate = 'kid' in found ? found : await found
  if (candidate === undefined) return deny('key_unknown')
  if (!(await isSignedBy(candidate.publicKey, token))) {
    return deny('signature_invalid', { keyId: kid })
  }
  // The set may have been replaced meanwhile: a key that is no longer in it verifies nothing.
  const key = keySource.current(kid) ?? (await keySource.find(kid))
  if (key?.thumbprint !== candidate.thumbprint) return deny('key_unknown')
  // `parseToken` refuses base64url that is not canonical, so a payload read earlier is what the key has signed.
  const payload = unverified ?? readPayload(token)
  if (payload === undefined) return deny('token_malformed', { keyId: kid })
  return allow({ key, payload })
}

/** RSASSA-PKCS1-v1_5 using SHA-256 (RFC 7518, section 3.3), in a thread of Node's pool. */
const isSignedBy = (key: KeyObject, token: string): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const end = token.lastIndexOf('.')
    const signed = Buffer.from(token.slice(0, end), 'latin1')
    const signature = Buffer.from(token.slice(end + 1), 'base64url')
    verify('sha256', signed, key, signature, (error, isValid) => {
      if (error === null) resolve(isValid)
      else reject(error)
    })
  })
