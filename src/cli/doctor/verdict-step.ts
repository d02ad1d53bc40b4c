import type { Denial, Reason } from '../../base/decision/reason.js'
import { permissionsClaimOf } from '../../verification/policy/check-claims.js'
import type { Policy, TokenRules } from '../../verification/policy/policy.js'

/** A step of the decision on a token. After `payload`, a step with the name of a claim checks that claim. */
export type VerdictStep = keyof typeof CONDITIONS

/** The steps, in order; with a DPoP proof (RFC 9449) also its check. */
export const stepsOf = ({ tokens }: Policy, proof?: object): readonly VerdictStep[] => [
  'bearer',
  'header',
  ...(tokens.kind === 'oauth2' ? (['typ'] as const) : []),
  'key',
  'signature',
  'payload',
  'iss',
  'aud',
  ...kindSteps(tokens),
  'sub',
  permissionsClaimOf(tokens) as VerdictStep,
  'exp',
  'iat',
  'nbf',
  'jti',
  'cnf',
  'times',
  ...(proof === undefined ? [] : (['proof'] as const)),
  'denylist',
  'caller',
  'required_permissions',
]

function kindSteps(tokens: TokenRules): VerdictStep[] {
  if (tokens.kind === 'service') return ['source', 'token_type']
  return tokens.accessTokenType === 'any' ? ['access_token'] : []
}

/** The condition that a step checks. `policy` is `undefined` if there are several, and none is for this token. */
export function conditionOf(step: VerdictStep, policy: Policy | undefined): string {
  if (policy === undefined) return step === 'iss' ? ISSUER_OF_A_POLICY : CONDITIONS[step]
  const { tokens } = policy
  if (tokens.kind === 'service') return CONDITIONS[step]
  if (step === 'permissions') return PERMISSIONS_IF_ANY
  return step === 'typ' && tokens.accessTokenType === 'any' ? ANY_TYPE : CONDITIONS[step]
}

const ISSUER_OF_A_POLICY = 'the issuer is that of a policy'
const PERMISSIONS_IF_ANY = 'the permissions, if any, are a list of strings'
const ANY_TYPE = 'the typ of the header, if any, is at+jwt or JWT'

const CONDITIONS = {
  bearer: 'there is one Authorization header, with Bearer and a token',
  header: 'the header has RS256, a key id and no parameter that changes how the token is read',
  typ: 'the typ of the header is at+jwt',
  key: 'the key is in the key set, and the policy allows it',
  signature: 'the signature is from this key',
  payload: 'the payload is a JSON object',
  iss: 'the issuer is the one in the policy',
  aud: 'the token is for this receiver',
  source: 'the source is the one in the policy',
  token_type: 'the type is the one in the policy',
  access_token: 'no claim shows that it is an ID token or another token',
  sub: 'the token names its caller',
  permissions: 'the token lists its permissions',
  scope: 'the scope, if any, is a string',
  scp: 'the scopes, if any, are a string or a list of strings',
  roles: 'the roles, if any, are a list of strings',
  exp: 'the token has an expiry time in seconds',
  iat: 'the time of issue, if any, is a number',
  nbf: 'the start of validity, if any, is a number',
  jti: 'the token id, if any, is a string of 1 to 256 characters',
  cnf: 'the token is bound as the policy requires, and to nothing that the policy cannot check',
  times: 'the token is valid now, and its lifetime is short enough',
  proof: 'the proof is by the key of the token, and for this method, URL, time and token',
  denylist: "the policy's denylist does not deny the token",
  caller: 'the caller is approved',
  required_permissions: 'the token grants the permissions that the policy requires',
} as const

/**
 * `the claim`: the step that `evidence.claim` names. `another guard`: `doctor` does not run the middleware that gives the
 * reason, such as `requireSingleUse` and `acceptOneOf`.
 */
type DecidingStep = VerdictStep | 'the claim' | 'another guard'

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
  key_not_looked_up: 'key',
  key_set_unavailable: 'key',
  signature_invalid: 'signature',
  token_type_invalid: 'typ',
  id_token: 'access_token',
  confirmation_unsupported: 'cnf',
  confirmation_missing: 'cnf',
  certificate_missing: 'another guard',
  certificate_mismatch: 'another guard',
  proof_missing: 'another guard',
  proof_invalid: 'proof',
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

/** Returns the step that ended in the denial. */
export function stepOf({ reason, evidence }: Pick<Denial, 'reason' | 'evidence'>): VerdictStep {
  // The check of the payload follows that of the signature, and adds the id of the verified key.
  if (reason === 'token_malformed' && evidence.keyId !== undefined) return 'payload'
  const deciding = DECIDED_AT[reason]
  if (deciding === 'another guard') throw new TypeError(`${reason} is decided by another guard`)
  return deciding === 'the claim' ? (evidence.claim as VerdictStep) : deciding
}
