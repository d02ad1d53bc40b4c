import { afterFailure, type BackOff, isBackingOff as isWaiting } from '../../base/back-off.js'
import type { FetchFailureCode } from '../../base/decision/key-set-event.js'
import type { Validators } from './fetch-key-set.js'
import type { KeySetHealth, VerificationKey } from './key-set.js'

/**
 * When a set is refreshed and how long it is used, in seconds; minimums are already applied. The options and the
 * health use "stale" differently: `maxStaleSeconds` counts from the fetch, `staleIfErrorSeconds` from the end of
 * `max-age`, and the health is `stale` once a refresh is due.
 */
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
interface CurrentSet {
  readonly keys: ReadonlyMap<string, VerificationKey>
  readonly fetchedAt: number
  readonly refreshAt: number
  readonly freshUntil: number
  readonly expiresAt: number
  readonly maxAgeSeconds: number | undefined
  readonly validators: Validators | undefined
}

/** The failures since the last success, and why the last fetch failed. */
interface LastFetchFailure extends BackOff {
  readonly code: FetchFailureCode
  readonly systemCode?: string | undefined
  readonly isNotFound?: boolean
}

/** The state of a key set, as an immutable value. */
export interface KeySetState {
  readonly current: CurrentSet | undefined
  /** The times of the last set, once it has expired. */
  readonly expired: { readonly fetchedAt: number; readonly expiresAt: number } | undefined
  readonly lastFailure: LastFetchFailure | undefined
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
export type KeySetStateEvent = { readonly at: number } & (
  | FetchResult
  | ({ readonly type: 'failed'; readonly jitter: number } & Omit<LastFetchFailure, keyof BackOff>)
  | { readonly type: 'time_passed' }
)

/** After a successful fetch the next one in the background starts no sooner than this. */
const REFRESH_FLOOR_SECONDS = 5
const MIN_MAX_STALE_SECONDS = 10

export const COLD: KeySetState = {
  current: undefined,
  expired: undefined,
  lastFailure: undefined,
}

/** The state with an `initial` set: a refresh is due immediately. */
export function initialState(
  keys: ReadonlyMap<string, VerificationKey>,
  at: number,
  span: Lifespan,
): KeySetState {
  const expiresAt = at + span.maxStaleSeconds * 1000
  const noHeaders = { maxAgeSeconds: undefined, validators: undefined }
  const times = { fetchedAt: at, refreshAt: at, freshUntil: expiresAt, expiresAt }
  return { ...COLD, current: { keys, ...times, ...noHeaders } }
}

/** Two attempts, and the pause between them. */
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
export function advance(state: KeySetState, event: KeySetStateEvent, span: Lifespan): KeySetState {
  switch (event.type) {
    case 'fetched':
      return { ...COLD, current: currentSetOf(event, span) }
    case 'not_modified': {
      // A 304 that arrives after the set has expired has no set to renew.
      const aged = advance(state, { type: 'time_passed', at: event.at }, span)
      return aged.current === undefined
        ? aged
        : { ...COLD, current: currentSetOf({ ...aged.current, ...event }, span) }
    }
    case 'failed': {
      const aged = advance(state, { type: 'time_passed', at: event.at }, span)
      const { code, systemCode, isNotFound = false } = event
      const failure = { code, systemCode, isNotFound }
      return { ...aged, lastFailure: { ...afterFailure(aged.lastFailure, event), ...failure } }
    }
    case 'time_passed': {
      const { current } = state
      if (current === undefined || event.at < current.expiresAt) return state
      const { fetchedAt, expiresAt } = current
      return { ...state, current: undefined, expired: { fetchedAt, expiresAt } }
    }
  }
}

type Fetched = { readonly at: number } & Omit<Extract<FetchResult, { type: 'fetched' }>, 'type'>

function currentSetOf(fetched: Fetched, span: Lifespan): CurrentSet {
  const { at, keys, leftSeconds, maxAgeSeconds, validators } = fetched
  const freshSeconds = Math.min(leftSeconds ?? span.maxStaleSeconds, span.maxStaleSeconds)
  // Leaves the second half of the time that the set is fresh for retries of a failed refresh.
  const dueSeconds = Math.min(span.refreshSeconds, freshSeconds / 2)
  return {
    keys,
    fetchedAt: at,
    refreshAt: at + Math.max(REFRESH_FLOOR_SECONDS, dueSeconds) * 1000,
    freshUntil: at + freshSeconds * 1000,
    expiresAt: at + Math.min(freshSeconds + span.staleIfErrorSeconds, span.maxStaleSeconds) * 1000,
    maxAgeSeconds,
    validators,
  }
}

/** Drops a set past its `max-age` unless fetching is known to fail at the moment. */
export function usableState(state: KeySetState, now: number, span: Lifespan): KeySetState {
  const { current } = state
  if (current === undefined || now < current.freshUntil || isUnreachable(state, now, span))
    return state
  const { fetchedAt, freshUntil } = current
  return { ...state, current: undefined, expired: { fetchedAt, expiresAt: freshUntil } }
}

/**
 * Whether the last fetch failed so recently that its retry may still be running. An older failure, such as one
 * from before the process was suspended, proves nothing.
 */
const isUnreachable = (
  { lastFailure }: KeySetState,
  now: number,
  { fetchSeconds }: Lifespan,
): boolean =>
  lastFailure !== undefined &&
  lastFailure.code !== 'closed' &&
  now < lastFailure.retryAt + fetchSeconds * 1000

export const isBackingOff = ({ lastFailure }: KeySetState, now: number): boolean =>
  isWaiting(lastFailure, now)

/** When the next background fetch may start; `undefined` before the first fetch. */
export const nextFetchAt = ({ current, expired, lastFailure }: KeySetState): number | undefined =>
  lastFailure?.retryAt ?? current?.refreshAt ?? expired?.expiresAt

export function isRefreshDue(state: KeySetState, now: number): boolean {
  if (isBackingOff(state, now)) return false
  if (state.lastFailure !== undefined || state.expired !== undefined) return true
  return state.current !== undefined && isPastRefresh(state.current, now)
}

/** A set fetched in the future means that the clock was set back: it is refreshed. */
const isPastRefresh = ({ refreshAt, fetchedAt }: CurrentSet, now: number): boolean =>
  now >= refreshAt || now < fetchedAt

export function keySetHealth(state: KeySetState, now: number): KeySetHealth {
  const { current, expired, lastFailure } = state
  const known = current ?? expired
  const until = lastFailure === undefined ? current?.freshUntil : undefined
  const age = known && {
    ageSeconds: Math.max(0, (now - known.fetchedAt) / 1000),
    expiresAt: (until ?? known.expiresAt) / 1000,
  }
  return {
    state: healthState(state, now),
    ...age,
    keys: current === undefined ? [] : [...current.keys.keys()],
    ...(lastFailure !== undefined && { lastError: lastFailure.code }),
  }
}

function healthState({ current, expired }: KeySetState, now: number): KeySetHealth['state'] {
  if (current !== undefined) return isPastRefresh(current, now) ? 'stale' : 'fresh'
  return expired === undefined ? 'cold' : 'expired'
}
