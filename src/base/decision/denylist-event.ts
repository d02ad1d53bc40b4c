import { openChannel } from './observers.js'

/** Why a live denylist could not be read: a closed list, for operators. */
export type DenylistFailureCode = 'timeout' | 'network' | 'server' | 'malformed' | 'closed'

/** Event of a live denylist, on the diagnostics channel `express-service-auth:denylist`. */
export type DenylistEvent =
  /** Another version is in force; `added` and `removed` count entries. */
  | {
      readonly type: 'changed'
      readonly version: number
      readonly added: number
      readonly removed: number
    }
  /** It has not been confirmed of late (`stale`), or for longer than it may be used (`expired`). */
  | { readonly type: 'stale' | 'expired'; readonly reason: DenylistFailureCode }
  /** It is confirmed again. */
  | { readonly type: 'recovered' }
  /** The list has lost entries, which stay in force here; `kept` counts them. */
  | { readonly type: 'regressed'; readonly kept: number }

const denylist = openChannel('denylist')

/** Publishes events. They are computed only if there are subscribers. */
export function announceDenylist(events: () => Iterable<DenylistEvent>): void {
  if (!denylist.hasSubscribers) return
  for (const event of events()) denylist.publish(Object.freeze(event))
}
