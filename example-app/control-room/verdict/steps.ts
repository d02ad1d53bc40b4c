import type { IdempotencyEvent, Reason } from 'express-service-auth'

/** The steps of the verdict on a call, in the order in which a receiver takes them. */
export const STEPS = [
  'Authorization header',
  'Form of the token',
  'Header and algorithm',
  'Key id',
  'Key is known',
  'Signature',
  'Claims',
  'Life time',
  'Binding',
  'Denylist',
  'Caller approved',
  'Permissions',
  'Token used once',
  'Idempotency-Key',
  'Handler',
] as const

export type Step = (typeof STEPS)[number]

/** Only writes come to these. */
const STEPS_OF_WRITES: readonly Step[] = ['Token used once', 'Idempotency-Key']

export const stepsOf = (method: 'GET' | 'POST'): readonly Step[] =>
  method === 'POST' ? STEPS : STEPS.filter((step) => !STEPS_OF_WRITES.includes(step))

/**
 * Where each reason of a decision arises. Keys are denied by the live denylist here: in the
 * receivers' policy there is no other.
 */
export const STEP_OF_REASON: Readonly<Record<Reason, Step>> = {
  credentials_missing: 'Authorization header',
  credentials_ambiguous: 'Authorization header',
  authorization_repeated: 'Authorization header',
  authorization_malformed: 'Authorization header',
  token_too_long: 'Authorization header',
  token_malformed: 'Form of the token',
  session_token_malformed: 'Form of the token',
  header_parameter_forbidden: 'Header and algorithm',
  algorithm_not_allowed: 'Header and algorithm',
  token_type_invalid: 'Header and algorithm',
  id_token: 'Claims',
  confirmation_unsupported: 'Claims',
  confirmation_missing: 'Claims',
  certificate_missing: 'Binding',
  certificate_mismatch: 'Binding',
  proof_missing: 'Binding',
  proof_invalid: 'Binding',
  key_id_invalid: 'Key id',
  static_key_refused: 'Key is known',
  key_unknown: 'Key is known',
  key_not_looked_up: 'Key is known',
  key_set_unavailable: 'Key is known',
  signature_invalid: 'Signature',
  claim_missing: 'Claims',
  claim_invalid: 'Claims',
  identity_missing: 'Claims',
  token_expired: 'Life time',
  token_not_yet_valid: 'Life time',
  token_lifetime_too_long: 'Life time',
  key_denied: 'Denylist',
  token_denied: 'Denylist',
  token_issued_too_early: 'Denylist',
  caller_denied: 'Denylist',
  denylist_unavailable: 'Denylist',
  caller_not_approved: 'Caller approved',
  permission_missing: 'Permissions',
  token_id_missing: 'Token used once',
  token_replayed: 'Token used once',
  store_unavailable: 'Token used once',
}

type KeyReason = Extract<IdempotencyEvent, { outcome: 'refused' | 'undecided' }>['reason']

/** Where each reason of `requireIdempotencyKey` arises. */
export const STEP_OF_KEY_REASON: Readonly<Record<KeyReason, Step>> = {
  key_missing: 'Idempotency-Key',
  key_invalid: 'Idempotency-Key',
  key_reused: 'Idempotency-Key',
  request_in_progress: 'Idempotency-Key',
  outcome_unknown: 'Idempotency-Key',
  result_not_stored: 'Idempotency-Key',
  store_unavailable: 'Idempotency-Key',
  timed_out: 'Handler',
  conflict: 'Handler',
  commit_unknown: 'Handler',
  commit_refused: 'Handler',
}

/** The last step that an accepted decision of each middleware has passed. */
export const PASSED_BY = {
  // Of the permissions only those that the policy asks of every request, and here it asks none.
  serviceAuth: 'Caller approved',
  acceptOneOf: 'Caller approved',
  requirePermissions: 'Permissions',
  requireAnyPermission: 'Permissions',
  requireSingleUse: 'Token used once',
  authenticate: 'Caller approved',
  requireIdempotencyKey: 'Idempotency-Key',
} as const satisfies Record<string, Step>
