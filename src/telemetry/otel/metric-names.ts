import type { Attributes } from '@opentelemetry/api'
import type { DecisionEvent } from '../../base/decision/decision-event.js'
import type { IdempotencyEvent } from '../../base/decision/idempotency-event.js'

/** The name of the instrumentation scope. */
export const SCOPE = 'express-service-auth'

export const METRIC = {
  decisions: 'express_service_auth.decisions',
  reservations: 'express_service_auth.reservations',
  runs: 'express_service_auth.runs',
  storeOperationDuration: 'express_service_auth.store.operation.duration',
  keySetFetches: 'express_service_auth.key_set.fetches',
  keySetAge: 'express_service_auth.key_set.age',
  keySetKeys: 'express_service_auth.key_set.keys',
  denylistAge: 'express_service_auth.denylist.age',
  denylistEntries: 'express_service_auth.denylist.entries',
  tokenCacheRequests: 'express_service_auth.token_cache.requests',
} as const

export const ATTRIBUTE = {
  errorType: 'error.type',
  peer: 'service.peer.name',
  guard: 'express_service_auth.guard',
  outcome: 'express_service_auth.outcome',
  credential: 'express_service_auth.credential',
  confirmation: 'express_service_auth.confirmation',
  reason: 'express_service_auth.reason',
  keyId: 'express_service_auth.key_id',
  record: 'express_service_auth.record',
  fence: 'express_service_auth.fence',
  runEnd: 'express_service_auth.run.end',
  storeOperation: 'express_service_auth.store.operation',
  keySetUrl: 'express_service_auth.key_set.url',
  denylistIndex: 'express_service_auth.denylist.index',
  result: 'express_service_auth.result',
} as const

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
