import { openChannel, publish } from './observers.js'

/**
 * Why a fetch of the key set failed: a closed list, for operators.
 *
 * - `timeout`: no complete response within `timeoutMs`.
 * - `network`: no connection, or it was cut.
 * - `status`: a status other than 200, or 304 in reply to a conditional request. Redirects are refused.
 * - `too_large`: a body of more than 64 KiB.
 * - `malformed`: no JSON in UTF-8, or no object with a list of `keys`.
 * - `too_many_keys`: more than 32 members of `keys`.
 * - `no_usable_key`: no member of `keys` may verify RS256 signatures.
 * - `closed`: the key set was closed.
 */
export type FetchFailureCode =
  | 'timeout'
  | 'network'
  | 'status'
  | 'too_large'
  | 'malformed'
  | 'too_many_keys'
  | 'no_usable_key'
  | 'closed'

/** Why a member of a JWKS document is not a usable key: a closed list, for operators. */
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

/** Event of a key set, on the diagnostics channel `express-service-auth:keys`. */
export type KeySetEvent = KeySetChange & {
  /** The address of the key set, without its query. */
  readonly jwksUri: string
}

/**
 * A change of a key set.
 *
 * @inline
 */
export type KeySetChange =
  /** A fetch has replaced the set; the lists hold key ids. */
  | {
      readonly type: 'fetched'
      readonly added: readonly string[]
      readonly replaced: readonly string[]
      readonly removed: readonly string[]
    }
  /** A fetch has confirmed the set (304). */
  | { readonly type: 'not_modified' }
  /** A fetch has failed; the set that is held stays in use for as long as it may. */
  | { readonly type: 'failed'; readonly reason: FetchFailureCode }
  /** A member of the document is not a usable key. Reported once, not at every fetch. */
  | { readonly type: 'key_skipped'; readonly reason: SkipReason; readonly keyId?: string }
  /** Tokens with unknown key ids may cause no more fetches for now. */
  | { readonly type: 'budget_exhausted' }
  /** The set is too old to be used. */
  | { readonly type: 'expired' }

const keys = openChannel('keys')

/** The address as operators may see it: its query may hold a secret. */
export const withoutQuery = (jwksUri: string): string => jwksUri.split(/[?#]/, 1)[0] ?? ''

export function announceKeySet(jwksUri: string, change: KeySetChange): void {
  publish<KeySetEvent>(keys, () => ({ ...change, jwksUri: withoutQuery(jwksUri) }))
}
