import type { Attributes } from '@opentelemetry/api'
import type { DecisionEvent } from '../../base/decision/decision-event.js'
import type { IdempotencyEvent } from '../../base/decision/idempotency-event.js'
import { ATTRIBUTE } from './names.js'

/** Refusals whose caller may be unknown to the policy: a denylist may name any caller. */
const UNVERIFIED_CALLER_REASONS: readonly string[] = ['caller_not_approved', 'caller_denied']

/**
 * Returns only callers that the policy names. Any other `sub` is chosen by the caller, and each would
 * create another time series.
 */
export function peerOf(event: DecisionEvent | IdempotencyEvent): Attributes {
  const { caller } = event
  const isNamed = event.outcome === 'accepted' || !UNVERIFIED_CALLER_REASONS.includes(event.reason)
  return caller !== undefined && isNamed ? { [ATTRIBUTE.peer]: caller } : {}
}
