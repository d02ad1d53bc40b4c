import { type FetchFailureCode, withoutQuery } from '../../base/decision/key-set-event.js'

/** Where a receiver's keys come from; made by `remoteKeySet`. */
export interface KeySet {
  /**
   * Resolves once the key set has been fetched. Rejects with a `ServiceAuthError` of the code
   * `'unavailable'` when it could not be; a later call tries again.
   */
  ready(): Promise<void>
  /** The state of the set, from memory, without key material. */
  health(): KeySetHealth
  /** Stops fetching for good. A set that is held stays in use until it expires. */
  close(): void
}

/** The state of a key set. JSON-serialisable. */
export interface KeySetHealth {
  /** `stale`: in use, and a refresh is due. `cold` (never fetched) and `expired`: no key is usable. */
  readonly state: 'cold' | 'fresh' | 'stale' | 'expired'
  /** Seconds since the last successful fetch; of an `initial` set, since the key set was made. */
  readonly ageSeconds?: number
  /** The usable key ids. */
  readonly keys: readonly string[]
  /** Why the last fetch failed, until one succeeds. */
  readonly lastError?: FetchFailureCode
  /** Seconds since the epoch: until when the set can be used. */
  readonly expiresAt?: number
}

/** An RSA public key as JWK (RFC 7518, section 6.3.1). */
export interface RsaJwk {
  readonly kty: 'RSA'
  readonly n: string
  readonly e: string
}

/**
 * A key that may verify RS256 signatures. A refresh that does not change a key keeps its object, so
 * `===` tells whether a key is still in the set.
 */
export interface VerificationKey {
  readonly kid: string
  /** Frozen, its numbers in canonical form, without leading zeros. */
  readonly jwk: RsaJwk
}

/** Whether both are one key under one id; their objects differ if it was withdrawn in between. */
export const isSameKey = (one: VerificationKey, other: VerificationKey): boolean =>
  one.kid === other.kid && one.jwk.n === other.jwk.n && one.jwk.e === other.jwk.e

/** Whether the core publishes a key is not known, because the budget of fetches is spent. */
export const NOT_LOOKED_UP = 'not_looked_up'

export type FoundKey = VerificationKey | typeof NOT_LOOKED_UP | undefined

/** The key set as verification uses it. */
export interface KeySource {
  /** The key with this id that may be used now; never waits. */
  current(kid: string): VerificationKey | undefined
  /**
   * The key, or a promise of it if a fetch is needed; `undefined` if the core does not publish it. The promise
   * rejects with `Unavailable` if a fetch has failed.
   */
  find(kid: string): FoundKey | Promise<FoundKey>
}

const sources = new WeakMap<object, KeySource>()

/** Attaches the source, which verification uses, to the object that the app holds. */
export function withSource(keySet: KeySet, source: KeySource): KeySet {
  sources.set(keySet, source)
  return keySet
}

export const keySourceOf = (keySet: unknown): KeySource | undefined =>
  typeof keySet === 'object' && keySet !== null ? sources.get(keySet) : undefined

/** For the message of a 404, which most often comes from the address of one with the path of the other. */
export const KEY_SET_PATHS =
  'a core itself publishes /.well-known/jwks.json, the backend SDK /auth/jwt/jwks.json'

const addresses = new WeakMap<object, string>()

/** Remembers the address of the key set for an object that the app holds. */
export function withKeySetAddress<Holder extends object>(
  holder: Holder,
  jwksUri: string | undefined,
): Holder {
  if (jwksUri !== undefined) addresses.set(holder, withoutQuery(jwksUri))
  return holder
}

/** The address of the object's key set, without its query; `undefined` for other objects. */
export const keySetAddressOf = (holder: object): string | undefined => addresses.get(holder)
