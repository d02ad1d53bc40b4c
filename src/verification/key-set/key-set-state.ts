import { afterFailure, type BackOff, isBackingOff as isWaiting } from '../../base/back-off.js'
import type { FetchFailureCode } from '../../base/decision/key-set-event.js'
import type { Validators } from './fetch-key-set.js'
import type { KeySetHealth, VerificationKey } from './key-set.js'

/** When a set is refreshed and how long it is used, in seconds; the least values are applied. */
export interface Lifespan {
  readonly refreshSeconds: number
  readonly maxStaleSeconds: number
  /** How long a set is used past its `max-age` while it cannot be fetched (RFC 5861, section 4). */
  readonly staleIfErrorSeconds: number
  /** How long a fetch takes at most, with its second attempt. */
  readonly fetchSeconds: number
}

/**
 * A set that may be used until `freshUntil`, and until `expiresAt` while it cannot be fetched. Times are
 * milliseconds of the key set's clock.
 */
interface HeldSet {
  readonly keys: ReadonlyMap<string, VerificationKey>
  readonly fetchedAt: number
  readonly refreshAt: number
  readonly freshUntil: number
  readonly expiresAt: number
  readonly maxAgeSeconds: number | undefined
  readonly validators: Validators | undefined
}

/** The failures since the last success, and why the last fetch failed. */
interface Trouble extends BackOff {
  readonly code: FetchFailureCode
  readonly systemCode?: string | undefined
  readonly isNotFound?: boolean
}

/** The state of a key set, as an immutable value. */
export interface Life {
  readonly held: HeldSet | undefined
  /** The times of the last set, once it has expired. */
  readonly expiredSince: { readonly fetchedAt: number; readonly expiresAt: number } | undefined
  readonly trouble: Trouble | undefined
}

/** The result of a successful fetch; `leftSeconds` as in `Freshness`. */
export type FetchResult =
  | {
      readonly type: 'fetched'
      readonly keys: ReadonlyMap<string, VerificationKey>
      readonly leftSeconds: number | undefined
      readonly maxAgeSeconds: number | undefined
      readonly validators: Validators | undefined
    }
  | {
      readonly type: 'not_modified'
      readonly leftSeconds: number | undefined
      readonly maxAgeSeconds: number | undefined
    }

/** An event of a key set. `jitter` is a random number from 0 to 1. */
export type LifeEvent = { readonly at: number } & (
  | FetchResult
  | ({ readonly type: 'failed'; readonly jitter: number } & Omit<Trouble, keyof BackOff>)
  | { readonly type: 'time_passed' }
)

/** After a successful fetch the next one in the background starts no sooner than this. */
const REFRESH_FLOOR_SECONDS = 5
const MIN_MAX_STALE_SECONDS = 10

export const COLD: Life = { held: undefined, expiredSince: undefined, trouble: undefined }

/** The state with an `initial` set: a refresh is due immediately. */
export function suppliedLife(
  keys: ReadonlyMap<string, VerificationKey>,
  at: number,
  span: Lifespan,
): Life {
  const expiresAt = at + span.maxStaleSeconds * 1000
  const unknown = { maxAgeSeconds: undefined, validators: undefined }
  const times = { fetchedAt: at, refreshAt: at, freshUntil: expiresAt, expiresAt }
  return { ...COLD, held: { keys, ...times, ...unknown } }
}

/** Two attempts, and what lies between them. */
const fetchSecondsOf = (timeoutMs: number): number => (2 * timeoutMs) / 1000 + 1

export const lifespanOf = ({
  timeoutMs,
  ...options
}: Omit<Lifespan, 'fetchSeconds'> & { readonly timeoutMs: number }): Lifespan => ({
  staleIfErrorSeconds: options.staleIfErrorSeconds,
  fetchSeconds: fetchSecondsOf(timeoutMs),
  refreshSeconds: Math.max(REFRESH_FLOOR_SECONDS, options.refreshSeconds),
  maxStaleSeconds: Math.max(MIN_MAX_STALE_SECONDS, options.maxStaleSeconds),
})

/** The state of a key set after an event. */
export function advance(life: Life, event: LifeEvent, span: Lifespan): Life {
  switch (event.type) {
    case 'fetched':
      return { ...COLD, held: hold(event, span) }
    case 'not_modified': {
      // A 304 that arrives after the set has expired confirms nothing.
      const now = advance(life, { type: 'time_passed', at: event.at }, span)
      return now.held === undefined ? now : { ...COLD, held: hold({ ...now.held, ...event }, span) }
    }
    case 'failed': {
      const now = advance(life, { type: 'time_passed', at: event.at }, span)
      const { code, systemCode, isNotFound = false } = event
      const failure = { code, systemCode, isNotFound }
      return { ...now, trouble: { ...afterFailure(now.trouble, event), ...failure } }
    }
    case 'time_passed': {
      const { held } = life
      if (held === undefined || event.at < held.expiresAt) return life
      const { fetchedAt, expiresAt } = held
      return { ...life, held: undefined, expiredSince: { fetchedAt, expiresAt } }
    }
  }
}

type Fetched = { readonly at: number } & Omit<Extract<FetchResult, { type: 'fetched' }>, 'type'>

function hold(fetched: Fetched, span: Lifespan): HeldSet {
  const { at, keys, leftSeconds, maxAgeSeconds, validators } = fetched
  const usableSeconds = Math.min(leftSeconds ?? span.maxStaleSeconds, span.maxStaleSeconds)
  // The second half of its life is left for refreshes that have to be repeated.
  const dueSeconds = Math.min(span.refreshSeconds, usableSeconds / 2)
  return {
    keys,
    fetchedAt: at,
    refreshAt: at + Math.max(REFRESH_FLOOR_SECONDS, dueSeconds) * 1000,
    freshUntil: at + usableSeconds * 1000,
    expiresAt: at + Math.min(usableSeconds + span.staleIfErrorSeconds, span.maxStaleSeconds) * 1000,
    maxAgeSeconds,
    validators,
  }
}

/** The state without a set that must not be used now, since nobody knows that it cannot be fetched. */
export function usableLife(life: Life, now: number, span: Lifespan): Life {
  const { held } = life
  if (held === undefined || now < held.freshUntil || isUnreachable(life, now, span)) return life
  const { fetchedAt, freshUntil } = held
  return { ...life, held: undefined, expiredSince: { fetchedAt, expiresAt: freshUntil } }
}

/**
 * Whether the last fetch failed, and so lately that the next one need not have ended: after a process has
 * been asleep, say, its last failure says nothing of now.
 */
const isUnreachable = ({ trouble }: Life, now: number, { fetchSeconds }: Lifespan): boolean =>
  trouble !== undefined && trouble.code !== 'closed' && now < trouble.retryAt + fetchSeconds * 1000

export const isBackingOff = ({ trouble }: Life, now: number): boolean => isWaiting(trouble, now)

/** When the next background fetch may start; `undefined` before the first. */
export const nextFetchAt = ({ held, expiredSince, trouble }: Life): number | undefined =>
  trouble?.retryAt ?? held?.refreshAt ?? expiredSince?.expiresAt

export function isRefreshDue(life: Life, now: number): boolean {
  if (isBackingOff(life, now)) return false
  if (life.trouble !== undefined || life.expiredSince !== undefined) return true
  return life.held !== undefined && isStale(life.held, now)
}

/** A set fetched in the future means that the clock was set back: it is refreshed. */
const isStale = ({ refreshAt, fetchedAt }: HeldSet, now: number): boolean =>
  now >= refreshAt || now < fetchedAt

export function healthOf(life: Life, now: number): KeySetHealth {
  const { held, expiredSince, trouble } = life
  const known = held ?? expiredSince
  const until = trouble === undefined ? held?.freshUntil : undefined
  const age = known && {
    ageSeconds: Math.max(0, (now - known.fetchedAt) / 1000),
    expiresAt: (until ?? known.expiresAt) / 1000,
  }
  return {
    state: stateOf(life, now),
    ...age,
    keys: held === undefined ? [] : [...held.keys.keys()],
    ...(trouble !== undefined && { lastError: trouble.code }),
  }
}

function stateOf({ held, expiredSince }: Life, now: number): KeySetHealth['state'] {
  if (held !== undefined) return isStale(held, now) ? 'stale' : 'fresh'
  return expiredSince === undefined ? 'cold' : 'expired'
}
