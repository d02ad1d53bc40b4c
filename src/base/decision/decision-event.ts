import { notify, openChannel } from './observers.js'
import type { Evidence, RefusalReason, UndecidedReason } from './reason.js'

/**
 * The middleware that decided.
 *
 * @inline
 */
export type DecidedBy =
  | 'serviceAuth'
  | 'acceptOneOf'
  | 'requirePermissions'
  | 'requireAnyPermission'
  | 'requireSingleUse'
  | 'requireIdempotencyKey'
  | 'authenticate'

/**
 * Fields of every decision.
 *
 * @inline
 */
interface DecisionContext extends Evidence {
  /** The middleware that has decided. */
  readonly by: DecidedBy
  /** The choice whose credential `acceptOneOf` has judged. */
  readonly credential?: string
  /** `req.id`, if the app set it to a number or at most 128 visible ASCII characters. */
  readonly requestId?: string | number
}

/**
 * The outcome, its reason, and the status that the caller got.
 *
 * @inline
 */
export type DecisionResult =
  /** The request continues. `confirmation`: what the caller's token is bound to; absent for a session. */
  | { readonly outcome: 'accepted'; readonly confirmation?: 'none' | 'certificate' | 'dpop' }
  /** The caller was turned away. */
  | { readonly outcome: 'refused'; readonly reason: RefusalReason; readonly status: 401 | 403 }
  /** It could not be decided. */
  | { readonly outcome: 'undecided'; readonly reason: UndecidedReason; readonly status: 503 }

/**
 * Event of a decision, for `onDecision` and on the diagnostics channel
 * `express-service-auth:decision`. It never contains a token, a signature or a value that an unverified caller
 * chose.
 */
export type DecisionEvent = DecisionContext & DecisionResult

/** Called with each decision. Its errors have no effect. */
export type DecisionObserver = (event: DecisionEvent) => unknown

const decisions = openChannel('decision')

/** Whether there are observers or subscribers. Without any, a request does not build its event. */
export const isObserved = (observers: readonly DecisionObserver[]): boolean =>
  observers.length > 0 || decisions.hasSubscribers

export function announceDecision(
  observers: readonly DecisionObserver[],
  event: DecisionEvent,
): void {
  for (const observe of observers) notify(observe, event)
  decisions.publish(event)
}
