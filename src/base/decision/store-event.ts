import { openChannel, publish } from './observers.js'

/** One call of a store, as published on the diagnostics channel `express-service-auth:store`. */
export interface StoreEvent {
  /** The function that was called. */
  readonly operation: StoreOperation
  /** Whether the call resolved, to whatever value; `false` if it rejected. */
  readonly ok: boolean
  /** Milliseconds until the call resolved or rejected. */
  readonly durationMs: number
}

/** A function of `SingleUseStore` or `IdempotencyStore`. */
export type StoreOperation = 'consume' | 'reserve' | 'renew' | 'settle'

const calls = openChannel('store')

/** Calls a store, and publishes the call with its duration if there are subscribers. */
export async function callStore<T>(operation: StoreOperation, call: () => Promise<T>): Promise<T> {
  if (!calls.hasSubscribers) return call()
  const startedAt = performance.now()
  let ok = false
  try {
    const answer = await call()
    ok = true
    return answer
  } finally {
    const durationMs = performance.now() - startedAt
    publish<StoreEvent>(calls, () => ({ operation, ok, durationMs }))
  }
}

/** Event of a Postgres store, on the diagnostics channel `express-service-auth:postgres`. */
export type PostgresEvent =
  /** A sweep has deleted expired rows; `durationMs` is how long it took. */
  | { readonly type: 'swept'; readonly deleted: number; readonly durationMs: number }
  /** Expired rows could not be deleted; the next sweep tries again. */
  | { readonly type: 'sweep_failed'; readonly sqlState?: string }

const postgres = openChannel('postgres')

/** Publishes an event. It is computed only if there are subscribers. */
export function announcePostgres(event: () => PostgresEvent): void {
  publish(postgres, event)
}

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
