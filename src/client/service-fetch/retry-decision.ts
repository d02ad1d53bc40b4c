import { growingDelayMs } from '../../base/back-off.js'
import type { AttemptOutcome } from './attempt-outcome.js'

/** The action after an attempt. */
export type RetryAction =
  /** Returns the response, or throws the failure. */
  | { readonly type: 'end' }
  /** Repeats immediately, with a token other than the refused one. */
  | { readonly type: 'another_token' }
  | { readonly type: 'retry'; readonly afterMs: number }

/** The state of the call after an attempt. */
export interface RetryContext {
  /** A read, or a write with an idempotency key: a repeated request has no further effect. */
  readonly isRepeatable: boolean
  /** Includes the attempt that has just ended. */
  readonly attempts: number
  readonly maxAttempts: number
  /** Whether the call has already replaced a refused token. */
  readonly hasChangedToken: boolean
  /** Milliseconds until the deadline. */
  readonly leftMs: number
  /** At least 0 and less than 1. */
  readonly random: number
}

const END: RetryAction = { type: 'end' }

/**
 * Decides whether to repeat a call: only if a repeat is safe and may have another outcome. Never waits
 * beyond the deadline.
 */
export function decideRetry(outcome: AttemptOutcome, context: RetryContext): RetryAction {
  const action = desiredAction(outcome, context)
  const afterMs = action.type === 'retry' ? action.afterMs : 0
  const isLast = context.attempts >= context.maxAttempts || afterMs >= context.leftMs
  return isLast ? END : action
}

function desiredAction(outcome: AttemptOutcome, context: RetryContext): RetryAction {
  const { isRepeatable } = context
  switch (outcome.type) {
    case 'token_refused': {
      const isSafeToRepeat = isRepeatable || outcome.isFromServiceAuth
      return isSafeToRepeat && !context.hasChangedToken ? { type: 'another_token' } : END
    }
    case 'in_progress':
      return isRepeatable ? { type: 'retry', afterMs: outcome.retryAfterMs } : END
    case 'unavailable': {
      const { retryAfterMs: afterMs = networkDelayMs(context) } = outcome
      return isRepeatable ? { type: 'retry', afterMs } : END
    }
    case 'network':
      return isRepeatable ? { type: 'retry', afterMs: networkDelayMs(context) } : END
    // Nothing was sent, so a write without a key can be repeated as well.
    case 'no_token':
      return { type: 'retry', afterMs: tokenDelayMs(context) }
    case 'replayed':
    case 'answered':
    case 'deadline':
      return END
  }
}

const NETWORK_DELAY = { firstMs: 100, maxMs: 5000 }

const networkDelayMs = ({ attempts, random }: RetryContext): number =>
  growingDelayMs(attempts, NETWORK_DELAY, random)

/** The factor between one wait for a token and the next. */
const TOKEN_DELAY_GROWTH = 2.5

/**
 * Spreads the waits of the remaining attempts over most of the remaining time, because a core takes
 * seconds to restart. By default they are about 2, 5 and 10 s.
 */
function tokenDelayMs({ attempts, maxAttempts, leftMs, random }: RetryContext): number {
  const shortestMs = leftMs / TOKEN_DELAY_GROWTH ** (maxAttempts - attempts)
  return Math.round(shortestMs * (1 + random / 4))
}
