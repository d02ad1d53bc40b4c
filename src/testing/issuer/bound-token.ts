import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { hash } from '../../base/supported-node.js'
import { compactToken, es256 } from './compact-token.js'

/** A token that is bound to a key (DPoP, RFC 9449), and the proofs of that key. */
export interface BoundToken {
  /** The token, with the thumbprint of its key in `cnf.jkt`. */
  readonly token: string
  /**
   * Returns a new proof for one request with the token, to send as `DPoP`.
   *
   * @param request.url the absolute URL of the request; query and fragment do not count.
   */
  proof(request: { readonly method: string; readonly url: string }): string
}

/** The public key of a P-256 key pair (RFC 7518, section 6.2.1). */
interface P256Jwk {
  readonly kty: 'EC'
  readonly crv: 'P-256'
  readonly x: string
  readonly y: string
}

/** A key pair of a caller. */
export interface ProofKey {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  readonly jwk: P256Jwk
  /** The `jkt` of tokens that are bound to it. */
  readonly thumbprint: string
}

export function createProofKey(): ProofKey {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = pair.publicKey.export({ format: 'jwk' })
  const jwk = { kty: 'EC', crv: 'P-256', x, y } as const
  return { ...pair, jwk, thumbprint: thumbprintOf(jwk) }
}

/** The thumbprint of RFC 7638: a digest of the required members in the order of their names. */
export const thumbprintOf = ({ crv, kty, x, y }: P256Jwk): string =>
  hash('sha256', JSON.stringify({ crv, kty, x, y }), 'base64url')

export const proofHeaderOf = ({ jwk }: ProofKey) =>
  ({ typ: 'dpop+jwt', alg: 'ES256', jwk }) as const

interface ProofFacts {
  readonly token: string
  readonly method: string
  readonly url: string
  /** Seconds since the epoch. */
  readonly now: number
}

/** The payload of a proof (RFC 9449, section 4.2). */
export const proofPayloadOf = ({ token, method, url, now }: ProofFacts) => ({
  jti: randomUUID(),
  htm: method,
  htu: url.replace(/[?#].*/s, ''),
  iat: Math.floor(now),
  ath: hash('sha256', token, 'base64url'),
})

export const createProof = (key: ProofKey, facts: ProofFacts): string =>
  compactToken(proofHeaderOf(key), proofPayloadOf(facts), es256(key.privateKey))
