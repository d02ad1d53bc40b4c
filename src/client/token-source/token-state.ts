import { type BackOff, isBackingOff } from '../../base/back-off.js'
import {
  afterTokenFailure,
  TokenSourceError,
  type TokenSourceErrorCode,
} from './token-source-error.js'

/** The state of a token source, from memory. JSON-serialisable; holds neither key nor token. */
export interface TokenSourceHealth {
  /**
   * `cold`: no token has been obtained yet. `fresh`: calls get the current token. `stale`: calls still get the
   * current token, and a renewal is due. `expired`: the next call requests another token.
   * `single_use`: no token is stored, every call requests one. `closed`: calls are rejected.
   */
  readonly state: 'cold' | 'fresh' | 'stale' | 'expired' | 'single_use' | 'closed'
  /** Seconds since the current token was requested. */
  readonly ageSeconds?: number
  /** Seconds for which calls still get the current token; 0 once it has expired. */
  readonly usableSeconds?: number
  /** Why the last token request failed; absent once one has succeeded. */
  readonly lastError?: TokenSourceErrorCode
  /** Present with `lastError`: seconds of back-off left; 0 if the next call may send a request. */
  readonly retrySeconds?: number
}

/** A token that calls get until `usableUntil`. Times are in milliseconds of the source's monotonic clock. */
export interface CurrentToken {
  readonly token: string
  readonly requestedAt: number
  readonly renewAt: number
  readonly usableUntil: number
}

/** The back-off after the failures since the last success, and the last error. */
export interface LastTokenFailure extends BackOff {
  readonly error: TokenSourceError
}

/** The immutable state of a token source. */
export interface TokenState {
  readonly current: CurrentToken | undefined
  readonly lastFailure: LastTokenFailure | undefined
  /** Start of the renewal in progress; there is at most one. */
  readonly renewingSince: number | undefined
  /** Start of the last renewal that was forced by a refused token. */
  readonly forcedAt: number | undefined
}

/** An event that changes the state. `jitter` is a random number from 0 to 1. */
export type TokenStateEvent = { readonly at: number } & (
  | { readonly type: 'requested'; readonly isForced: boolean }
  | {
      readonly type: 'minted'
      readonly token: string
      readonly validitySeconds: number
      readonly jitter: number
    }
  | { readonly type: 'failed'; readonly error: TokenSourceError; readonly jitter: number }
)

/** The reply to a `token()` call. */
type TokenAnswer =
  /** A token, immediately; the source starts a renewal if one is due. */
  | { readonly kind: 'token'; readonly token: string; readonly isRenewalDue: boolean }
  /** The result of the renewal in progress, or of a new one. If that fails, the call gets `fallback`, if any. */
  | { readonly kind: 'renewal'; readonly isForced: boolean; readonly fallback: string | undefined }
  | { readonly kind: 'failure'; readonly error: TokenSourceError }

/** The share of its lifetime after which a token is renewed. */
const RENEWED_AFTER = 0.8
/** Calls stop getting a token this long before it expires; the smaller value applies. */
const END_MARGIN = { share: 0.1, maxMs: 10_000 }
/** The minimum interval of forced renewals: a receiver may refuse every token. */
const FORCED_INTERVAL_MS = 5000

export const COLD: TokenState = {
  current: undefined,
  lastFailure: undefined,
  renewingSince: undefined,
  forcedAt: undefined,
}

/** Returns the state after an event. */
export function advance(state: TokenState, event: TokenStateEvent): TokenState {
  const { at } = event
  const idle = { ...state, renewingSince: undefined }
  switch (event.type) {
    case 'requested':
      return { ...state, renewingSince: at, ...(event.isForced && { forcedAt: at }) }
    case 'minted': {
      const current = currentTokenOf(event.token, state.renewingSince ?? at, event.validitySeconds)
      if (isUsable(current, at)) return { ...idle, current, lastFailure: undefined }
      // The token has arrived too late to be used.
      return advance(state, {
        ...event,
        type: 'failed',
        error: new TokenSourceError('core_timeout'),
      })
    }
    case 'failed':
      return {
        ...idle,
        lastFailure: {
          ...afterTokenFailure(state.lastFailure, event.error, event),
          error: event.error,
        },
      }
  }
}

/** Measures lifetime from the request, so that the clocks of other machines do not matter. */
function currentTokenOf(token: string, requestedAt: number, validitySeconds: number): CurrentToken {
  const lifetimeMs = validitySeconds * 1000
  const marginMs = Math.min(END_MARGIN.maxMs, END_MARGIN.share * lifetimeMs)
  return {
    token,
    requestedAt,
    renewAt: requestedAt + RENEWED_AFTER * lifetimeMs,
    usableUntil: requestedAt + lifetimeMs - marginMs,
  }
}

/** A `requestedAt` in the future means that the clock was set back: the token's age is unknown. */
const isUsable = ({ requestedAt, usableUntil }: CurrentToken, now: number): boolean =>
  requestedAt <= now && now < usableUntil

/** Returns the reply to a call at `now`; `refusedToken` is a token that a receiver has refused. */
export function answerTo(
  state: TokenState,
  refusedToken: string | undefined,
  now: number,
): TokenAnswer {
  const { current, lastFailure } = state
  const isRenewing = state.renewingSince !== undefined
  const mayRequest = !isRenewing && !isBackingOff(lastFailure, now)
  if (current === undefined || !isUsable(current, now)) {
    const isPaused = lastFailure !== undefined && !mayRequest && !isRenewing
    if (isPaused) return { kind: 'failure', error: lastFailure.error }
    return { kind: 'renewal', isForced: false, fallback: undefined }
  }
  const { token } = current
  const isRenewalDue = mayRequest && now >= current.renewAt
  if (token !== refusedToken) return { kind: 'token', token, isRenewalDue }
  if (isRenewing || isRenewalDue) return { kind: 'renewal', isForced: false, fallback: token }
  const mayForce = mayRequest && !wasForcedRecently(state, now)
  return mayForce
    ? { kind: 'renewal', isForced: true, fallback: token }
    : { kind: 'token', token, isRenewalDue }
}

/** Returns the token of a finished renewal. @throws TokenSourceError if the renewal failed. */
export function renewedToken({ current, lastFailure }: TokenState): string {
  if (current === undefined || lastFailure !== undefined) throw lastFailure?.error
  return current.token
}

const wasForcedRecently = ({ forcedAt }: TokenState, now: number): boolean =>
  forcedAt !== undefined && forcedAt <= now && now - forcedAt < FORCED_INTERVAL_MS

export function tokenHealth({ current, lastFailure }: TokenState, now: number): TokenSourceHealth {
  const age = current && {
    ageSeconds: Math.max(0, now - current.requestedAt) / 1000,
    usableSeconds: isUsable(current, now) ? (current.usableUntil - now) / 1000 : 0,
  }
  return { state: healthState(current, now), ...age, ...failureHealth(lastFailure, now) }
}

export function failureHealth(
  lastFailure: LastTokenFailure | undefined,
  now: number,
): Pick<TokenSourceHealth, 'lastError' | 'retrySeconds'> {
  if (lastFailure === undefined) return {}
  const retrySeconds = isBackingOff(lastFailure, now) ? (lastFailure.retryAt - now) / 1000 : 0
  return { lastError: lastFailure.error.code, retrySeconds }
}

function healthState(current: CurrentToken | undefined, now: number): TokenSourceHealth['state'] {
  if (current === undefined) return 'cold'
  if (!isUsable(current, now)) return 'expired'
  return now < current.renewAt ? 'fresh' : 'stale'
}
