import type { CryptoKey } from 'jose'
import { JWSSignatureVerificationFailed } from 'jose/errors'
import { compactVerify } from 'jose/jws/compact/verify'

/** An RSA public key as JWK (RFC 7518, section 6.3.1). */
export interface RsaJwk {
  readonly kty: 'RSA'
  readonly n: string
  readonly e: string
}

/** The members of private and symmetric keys (RFC 7518, section 6). */
export const PRIVATE_MEMBERS: readonly string[] = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

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
