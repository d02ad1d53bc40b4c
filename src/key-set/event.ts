import { channel } from 'node:diagnostics_channel'
import { withoutQuery } from './address.js'
import type { FetchFailureCode } from './exchange.js'
import type { SkipReason } from './screen.js'

/** What operators see of a key set, on the diagnostics channel `express-service-auth:keys`. */
export type KeySetEvent = KeySetChange & {
  /** The address of the key set, without its query. */
  readonly jwksUri: string
}

/**
 * What has happened to a key set.
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

const keys = channel('express-service-auth:keys')

/** Whether anybody listens. If nobody does, nobody asks what has changed. */
export const areKeysObserved = (): boolean => keys.hasSubscribers

export function announceKeySet(jwksUri: string, change: KeySetChange): void {
  if (!keys.hasSubscribers) return
  keys.publish(Object.freeze({ ...change, jwksUri: withoutQuery(jwksUri) } satisfies KeySetEvent))
}

interface Thumbprinted {
  readonly thumbprint: string
}

/** The key ids that a fetch has added, replaced and removed. */
export function changesBetween(
  before: ReadonlyMap<string, Thumbprinted> | undefined,
  after: ReadonlyMap<string, Thumbprinted>,
): Omit<Extract<KeySetChange, { type: 'fetched' }>, 'type'> {
  const earlier = before ?? new Map<string, Thumbprinted>()
  const ids = [...after.keys()]
  return {
    added: ids.filter((kid) => !earlier.has(kid)),
    replaced: ids.filter((kid) => {
      const known = earlier.get(kid)
      return known !== undefined && known.thumbprint !== after.get(kid)?.thumbprint
    }),
    removed: [...earlier.keys()].filter((kid) => !after.has(kid)),
  }
}
