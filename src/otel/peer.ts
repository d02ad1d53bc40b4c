import type { Attributes } from '@opentelemetry/api'
import type { DecisionEvent } from '../decision/event.js'
import type { IdempotencyEvent } from '../idempotency/event.js'
import { ATTRIBUTE } from './names.js'

/**
 * Only callers that the policy, or who denied them, has named: a `sub` that is not approved is a text
 * of the caller's choice, and each would be a series of its own.
 */
export function peerOf(event: DecisionEvent | IdempotencyEvent): Attributes {
  const { caller } = event
  const isNamed = event.outcome === 'accepted' || event.reason !== 'caller_not_approved'
  return caller !== undefined && isNamed ? { [ATTRIBUTE.peer]: caller } : {}
}
