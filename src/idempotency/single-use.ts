import { DependencyError, dependencyOf } from '../base/decision/dependency.js'
import { allow, type Decision, deny } from '../base/decision/reason.js'
import { Unavailable } from '../base/decision/service-auth-error.js'
import { callStore } from '../base/decision/store-event.js'
import { digestOfParts } from '../base/digest.js'

/** Remembers used tokens and proofs; shared by all instances of a receiver. */
export interface SingleUseStore {
  /**
   * Records `id` for at least `ttlMs`, unless it is recorded: `true` when this call has recorded it,
   * `false` when it was recorded before. One atomic step; of calls that race, one gets `true`.
   * Rejects if the store cannot tell which.
   */
  consume(id: string, ttlMs: number): Promise<boolean>
}

/** The id of a verified token, and how long it may be accepted. */
interface PresentedToken {
  readonly issuer: string
  readonly caller: string
  readonly tokenId: string | undefined
  /** Seconds since the epoch until which the token may be accepted anywhere, tolerance included. */
  readonly acceptableUntil: number
}

const MAX_TOKEN_ID_LENGTH = 256
/** Two receivers' clocks may each be a minute off, in opposite directions. */
const CLOCK_DRIFT_SECONDS = 120

/** What stores remember of a token or a proof that was used, and how long. */
export interface TokenUse {
  /** A digest. */
  readonly id: string
  readonly ttlMs: number
}

/** The use of a token, known by `iss`, `sub` and `jti` (RFC 7519, section 4.1.7). `now` is in seconds since the epoch. */
export function useOfToken(token: PresentedToken, now: number): Decision<TokenUse> {
  const { tokenId } = token
  if (tokenId === undefined || tokenId === '' || tokenId.length > MAX_TOKEN_ID_LENGTH) {
    return deny('token_id_missing', { claim: 'jti' })
  }
  // The token was valid when it was verified, but a record made now could be gone before its next use.
  if (now >= token.acceptableUntil) return deny('token_expired', { claim: 'exp' })
  return useOf([token.issuer, token.caller, tokenId], token.acceptableUntil - now)
}

/** A proof of possession, and how long it may be accepted. */
interface PresentedProof {
  /** The thumbprint of the key that signed the proof. */
  readonly thumbprint: string
  readonly jti: string
  /** Seconds since the epoch until which the proof may be accepted anywhere. */
  readonly acceptableUntil: number
}

/** The use of a proof, known by its key and `jti` (RFC 9449, section 11.1). `now` is in seconds since the epoch. */
export function useOfProof(
  { thumbprint, jti, acceptableUntil }: PresentedProof,
  now: number,
): Decision<TokenUse> {
  if (now > acceptableUntil) return deny('proof_invalid', { member: 'iat' })
  return useOf([thumbprint, jti], acceptableUntil - now)
}

const useOf = (parts: readonly string[], leftSeconds: number): Decision<TokenUse> =>
  allow({
    id: digestOfParts(parts),
    ttlMs: Math.ceil((leftSeconds + CLOCK_DRIFT_SECONDS) * 1000),
  })

/**
 * Whether this is the first use.
 *
 * @throws Unavailable if the store fails, DependencyError if it resolves to anything but a boolean.
 */
export async function consume({ id, ttlMs }: TokenUse, store: SingleUseStore): Promise<boolean> {
  let first: boolean
  try {
    first = await callStore('consume', () => store.consume(id, ttlMs))
  } catch (error) {
    throw new Unavailable('store', 'the single-use store failed', { cause: error })
  }
  if (typeof first !== 'boolean') {
    const message = 'consume of the store must resolve to a boolean'
    throw new DependencyError(dependencyOf('store', store), message)
  }
  return first
}
