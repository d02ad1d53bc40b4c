import type { Denial, Reason } from '../../base/decision/reason.js'

/** The steps of the decision on a token, in order. A step with the name of a claim checks that claim. */
export const STEPS = [
  'bearer',
  'header',
  'key',
  'signature',
  'payload',
  'iss',
  'aud',
  'source',
  'token_type',
  'sub',
  'permissions',
  'exp',
  'iat',
  'nbf',
  'jti',
  'times',
  'denylist',
  'caller',
  'required_permissions',
] as const

export type Step = (typeof STEPS)[number]

/** The question that each step answers. */
export const QUESTIONS: Record<Step, string> = {
  bearer: 'is it one Authorization header with Bearer and a token',
  header: 'is it a signed token with RS256 and a key id, and nothing that changes how it is read',
  key: 'may the key sign, and is it in the key set',
  signature: 'has that key signed the token',
  payload: 'is what was signed a JSON object',
  iss: 'is the issuer the one of the policy',
  aud: 'is it for this receiver',
  source: 'is it the source of the policy',
  token_type: 'is it the type of the policy',
  sub: 'does it name its caller',
  permissions: 'does it list permissions',
  exp: 'does it say when it expires, in seconds',
  iat: 'if it says when it was issued, is that a number',
  nbf: 'if it says from when on it holds, is that a number',
  jti: 'if it has an id, is that a text of 1 to 256 characters',
  times: 'does it hold now, and is its life short enough',
  denylist: "does the policy's denylist let it pass",
  caller: 'is its caller approved',
  required_permissions: 'does it grant what the policy requires of every request',
}

/** A step, or a marker: the refusal's claim is the step, or another guard refuses. */
type DecidingStep = Step | 'the claim' | 'another guard'

const DECIDED_AT: Record<Reason, DecidingStep> = {
  credentials_missing: 'bearer',
  authorization_repeated: 'bearer',
  authorization_malformed: 'bearer',
  token_too_long: 'bearer',
  token_malformed: 'header',
  algorithm_not_allowed: 'header',
  key_id_invalid: 'header',
  header_parameter_forbidden: 'header',
  static_key_refused: 'key',
  key_denied: 'key',
  key_unknown: 'key',
  key_set_unavailable: 'key',
  signature_invalid: 'signature',
  claim_missing: 'the claim',
  claim_invalid: 'the claim',
  token_expired: 'times',
  token_not_yet_valid: 'times',
  token_lifetime_too_long: 'times',
  token_denied: 'denylist',
  token_issued_too_early: 'denylist',
  caller_denied: 'caller',
  caller_not_approved: 'caller',
  permission_missing: 'required_permissions',
  credentials_ambiguous: 'another guard',
  session_token_malformed: 'another guard',
  identity_missing: 'another guard',
  token_id_missing: 'another guard',
  token_replayed: 'another guard',
  denylist_unavailable: 'denylist',
  store_unavailable: 'another guard',
}

/** Returns the step that ended in this refusal. */
export function stepOf({ reason, evidence }: Pick<Denial, 'reason' | 'evidence'>): Step {
  // With a key id it is the payload, because an unverified token has no known key id.
  if (reason === 'token_malformed' && evidence.keyId !== undefined) return 'payload'
  const deciding = DECIDED_AT[reason]
  if (deciding === 'another guard') throw new TypeError(`${reason} is decided by another guard`)
  return deciding === 'the claim' ? (evidence.claim as Step) : deciding
}
