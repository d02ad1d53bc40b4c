import { type BackOff, isBackingOff } from '../../base/back-off.js'
import { afterTokenFailure, TokenSourceError } from './token-source-error.js'
import type { TokenSourceHealth } from './token-source-health.js'

/** A token that calls get until `endsAt`. Times are in milliseconds of the source's monotonic clock. */
interface HeldToken {
  readonly token: string
  readonly askedAt: number
  readonly renewAt: number
  readonly endsAt: number
}

/** The back-off after the failures since the last success, and the last error. */
export interface Trouble extends BackOff {
  readonly error: TokenSourceError
}

/** The immutable state of a token source. */
export interface TokenLife {
  readonly held: HeldToken | undefined
  readonly trouble: Trouble | undefined
  /** Start of the renewal in progress; there is at most one. */
  readonly askingSince: number | undefined
  /** Start of the last renewal that was forced by a refused token. */
  readonly forcedAt: number | undefined
}

/** An event that changes the state. `jitter` is a random number from 0 to 1. */
export type LifeEvent = { readonly at: number } & (
  | { readonly type: 'asked'; readonly isForced: boolean }
  | {
      readonly type: 'minted'
      readonly token: string
      readonly validitySeconds: number
      readonly jitter: number
    }
  | { readonly type: 'failed'; readonly error: TokenSourceError; readonly jitter: number }
)

/** The reply to a `token()` call. */
export type Answer =
  /** A token, immediately; the source starts a renewal if one is due. */
  | { readonly kind: 'token'; readonly token: string; readonly isRenewalDue: boolean }
  /** The result of the renewal in progress, or of a new one. If it fails, `instead`, unless absent. */
  | { readonly kind: 'renewal'; readonly isForced: boolean; readonly instead: string | undefined }
  | { readonly kind: 'failure'; readonly error: TokenSourceError }

/** The share of its lifetime after which a token is renewed. */
const RENEWED_AFTER = 0.8
/** For the smaller of the two times before a token expires, calls no longer get it. */
const END_MARGIN = { share: 0.1, maxMs: 10_000 }
/** The minimum interval of forced renewals: a receiver may refuse every token. */
const FORCED_INTERVAL_MS = 5000

export const COLD: TokenLife = {
  held: undefined,
  trouble: undefined,
  askingSince: undefined,
  forcedAt: undefined,
}

/** Returns the state after an event. */
export function advance(life: TokenLife, event: LifeEvent): TokenLife {
  const { at } = event
  const idle = { ...life, askingSince: undefined }
  switch (event.type) {
    case 'asked':
      return { ...life, askingSince: at, ...(event.isForced && { forcedAt: at }) }
    case 'minted': {
      const held = hold(event.token, life.askingSince ?? at, event.validitySeconds)
      if (isUsable(held, at)) return { ...idle, held, trouble: undefined }
      return advance(life, {
        ...event,
        type: 'failed',
        error: new TokenSourceError('core_timeout'),
      })
    }
    case 'failed':
      return {
        ...idle,
        trouble: { ...afterTokenFailure(life.trouble, event.error, event), error: event.error },
      }
  }
}

/** Measures lifetime from the request, so that the clocks of other machines do not matter. */
function hold(token: string, askedAt: number, validitySeconds: number): HeldToken {
  const lifeMs = validitySeconds * 1000
  const marginMs = Math.min(END_MARGIN.maxMs, END_MARGIN.share * lifeMs)
  return {
    token,
    askedAt,
    renewAt: askedAt + RENEWED_AFTER * lifeMs,
    endsAt: askedAt + lifeMs - marginMs,
  }
}

/** An `askedAt` in the future means that the clock was set back: the token's age is unknown. */
const isUsable = ({ askedAt, endsAt }: HeldToken, now: number): boolean =>
  askedAt <= now && now < endsAt

/** Returns the reply to a call at `now`; `after` is a token that a receiver has refused. */
export function answerTo(life: TokenLife, after: string | undefined, now: number): Answer {
  const { held, trouble } = life
  const isAsking = life.askingSince !== undefined
  const mayAsk = !isAsking && !isBackingOff(trouble, now)
  if (held === undefined || !isUsable(held, now)) {
    const isPaused = trouble !== undefined && !mayAsk && !isAsking
    if (isPaused) return { kind: 'failure', error: trouble.error }
    return { kind: 'renewal', isForced: false, instead: undefined }
  }
  const { token } = held
  const isRenewalDue = mayAsk && now >= held.renewAt
  if (token !== after) return { kind: 'token', token, isRenewalDue }
  if (isAsking || isRenewalDue) return { kind: 'renewal', isForced: false, instead: token }
  const mayForce = mayAsk && !wasForcedLately(life, now)
  return mayForce
    ? { kind: 'renewal', isForced: true, instead: token }
    : { kind: 'token', token, isRenewalDue }
}

/** Returns the token of a finished renewal. @throws TokenSourceError if the renewal failed. */
export function tokenOf({ held, trouble }: TokenLife): string {
  if (held === undefined || trouble !== undefined) throw trouble?.error
  return held.token
}

const wasForcedLately = ({ forcedAt }: TokenLife, now: number): boolean =>
  forcedAt !== undefined && forcedAt <= now && now - forcedAt < FORCED_INTERVAL_MS

export function healthOf({ held, trouble }: TokenLife, now: number): TokenSourceHealth {
  const age = held && {
    ageSeconds: Math.max(0, now - held.askedAt) / 1000,
    usableSeconds: isUsable(held, now) ? (held.endsAt - now) / 1000 : 0,
  }
  return { state: stateOf(held, now), ...age, ...healthOfTrouble(trouble, now) }
}

export function healthOfTrouble(
  trouble: Trouble | undefined,
  now: number,
): Pick<TokenSourceHealth, 'lastError' | 'retrySeconds'> {
  if (trouble === undefined) return {}
  const retrySeconds = isBackingOff(trouble, now) ? (trouble.retryAt - now) / 1000 : 0
  return { lastError: trouble.error.code, retrySeconds }
}

function stateOf(held: HeldToken | undefined, now: number): TokenSourceHealth['state'] {
  if (held === undefined) return 'cold'
  if (!isUsable(held, now)) return 'expired'
  return now < held.renewAt ? 'fresh' : 'stale'
}
