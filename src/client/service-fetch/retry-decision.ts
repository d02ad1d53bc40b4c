import { growingDelayMs } from '../../base/back-off.js'
import type { Outcome } from './attempt-outcome.js'

/** What happens after an attempt. */
export type Step =
  /** What came is handed over: the answer is returned, the failure thrown. */
  | { readonly type: 'end' }
  /** At once, with another token than the one that was refused. */
  | { readonly type: 'another_token' }
  | { readonly type: 'again'; readonly afterMs: number }

/** Where the call stands when an attempt is over. */
export interface Standing {
  /** A read, or a write with an idempotency key: the same request twice is one effect. */
  readonly isRepeatable: boolean
  /** The one that is over included. */
  readonly attempts: number
  readonly maxAttempts: number
  /** Whether an attempt of this call was refused its token before. */
  readonly hasChangedToken: boolean
  /** Until the deadline. */
  readonly leftMs: number
  /** From 0 up to 1. */
  readonly random: number
}

const END: Step = { type: 'end' }

/**
 * Whether a call is repeated: only where that cannot do harm, and only where something else may come
 * of it. A wait that would pass the deadline is not begun.
 */
export function nextStep(outcome: Outcome, standing: Standing): Step {
  const step = wantedStep(outcome, standing)
  const afterMs = step.type === 'again' ? step.afterMs : 0
  const isLast = standing.attempts >= standing.maxAttempts || afterMs >= standing.leftMs
  return isLast ? END : step
}

function wantedStep(outcome: Outcome, standing: Standing): Step {
  const { isRepeatable } = standing
  switch (outcome.type) {
    case 'token_refused': {
      const isHarmless = isRepeatable || outcome.isOfContract
      return isHarmless && !standing.hasChangedToken ? { type: 'another_token' } : END
    }
    case 'unavailable':
    case 'in_progress':
      return isRepeatable ? { type: 'again', afterMs: outcome.retryAfterMs } : END
    case 'network':
      return isRepeatable
        ? {
            type: 'again',
            afterMs: growingDelayMs(standing.attempts, NETWORK_DELAY, standing.random),
          }
        : END
    // Nothing was sent: a write without a key, too, can be repeated.
    case 'no_token':
      return { type: 'again', afterMs: tokenDelayMs(standing) }
    case 'replayed':
    case 'answered':
    case 'deadline':
      return END
  }
}

const NETWORK_DELAY = { firstMs: 100, maxMs: 5000 }

/** How much longer each wait for a token is than the one before. */
const TOKEN_DELAY_GROWTH = 2.5

/**
 * The waits of the attempts that are left reach over most of the time that is left: a core that restarts
 * takes seconds. By default they are about 2, 5 and 10 s.
 */
function tokenDelayMs({ attempts, maxAttempts, leftMs, random }: Standing): number {
  const minMs = leftMs / TOKEN_DELAY_GROWTH ** (maxAttempts - attempts)
  return Math.round(minMs * (1 + random / 4))
}
