import type { Attributes } from '@opentelemetry/api'
import type { DecisionEvent } from '../../base/decision/decision-event.js'
import type { IdempotencyEvent } from '../../base/decision/idempotency-event.js'
import { ATTRIBUTE } from './names.js'

/** With these the policy may not name the caller: who denies one need not look whether it does. */
const OF_ANY_CALLER: readonly string[] = ['caller_not_approved', 'caller_denied']

/**
 * Only callers that the policy names: any other `sub` is a text of the caller's choice, and each would
 * be a series of its own.
 */
export function peerOf(event: DecisionEvent | IdempotencyEvent): Attributes {
  const { caller } = event
  const isNamed = event.outcome === 'accepted' || !OF_ANY_CALLER.includes(event.reason)
  return caller !== undefined && isNamed ? { [ATTRIBUTE.peer]: caller } : {}
}
