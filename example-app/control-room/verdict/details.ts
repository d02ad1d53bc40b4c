import type { DecisionEvent, IdempotencyEvent, Reason, RunEnd } from 'express-service-auth'
import type { STEP_OF_KEY_REASON } from './steps.js'

/** What is known of a refusal; each event has some of it. */
export interface Evidence {
  readonly claim?: string
  readonly permission?: string
  readonly keyId?: string
  readonly caller?: string
  readonly found?: 'abandoned' | 'unreadable'
}

type Sentence = (evidence: Evidence) => string

/** In quotes: a caller may have any name. */
const who = ({ caller }: Evidence): string =>
  caller === undefined ? 'the caller' : JSON.stringify(caller)
const key = ({ keyId }: Evidence): string => (keyId === undefined ? 'the key' : `the key ${keyId}`)
const says = (sentence: string): Sentence => {
  return () => sentence
}

const SENTENCES: Readonly<Record<Reason, Sentence>> = {
  credentials_missing: says('The request has no Authorization header.'),
  credentials_ambiguous: says('The request presents two credentials: it cannot be two callers.'),
  authorization_repeated: says('The request has more than one Authorization header.'),
  authorization_malformed: says('The Authorization header is not Bearer, one blank and a token.'),
  token_too_long: says('The token is longer than 8 KiB.'),
  token_malformed: ({ keyId }) =>
    keyId === undefined
      ? 'The token is not three segments of base64url with a JSON object as header.'
      : `The token is well signed by ${keyId}, and what was signed is no JSON object.`,
  session_token_malformed: says('The token of a session is not formed as such tokens are.'),
  header_parameter_forbidden: says(
    'The header of the token holds a parameter of a session, or one that would change how it is read.',
  ),
  algorithm_not_allowed: says('The token does not say RS256 as its algorithm.'),
  key_id_invalid: says('The key id is not a text of 1 to 256 visible characters.'),
  token_type_invalid: says('The header does not say at+jwt as the type of the token.'),
  confirmation_unsupported: says('The token is bound to a key, which this receiver cannot check.'),
  confirmation_missing: says('The policy requires a bound token.'),
  certificate_missing: says('The token is bound to a certificate, and the caller has none.'),
  certificate_mismatch: says('The token is bound to another certificate.'),
  proof_missing: says('The token is bound to a key, and the caller has proved none.'),
  proof_invalid: says('The token is bound to a key, and the proof of that key is wrong.'),
  id_token: ({ claim }) => `The claim ${claim} shows that this is no access token.`,
  static_key_refused: says('The token names a static key, and those sign no service tokens.'),
  key_unknown: says('The token names a key that the core does not publish.'),
  key_not_looked_up: says(
    'The receiver cannot tell: it lacks the key, and has fetched its key set twice within 10 seconds.',
  ),
  key_set_unavailable: says(
    'The receiver cannot tell: it has no usable key set, and the core does not give one.',
  ),
  signature_invalid: (evidence) =>
    `The signature is not what ${key(evidence)} makes of this header and payload.`,
  claim_missing: ({ claim }) => `The claim ${claim} is missing.`,
  claim_invalid: ({ claim }) => `The claim ${claim} is not what the policy demands.`,
  identity_missing: says('The verifier has let the request pass without an identity.'),
  token_expired: says('The token has expired, by its claim exp.'),
  token_not_yet_valid: ({ claim }) => `The token is not valid yet, by its claim ${claim}.`,
  token_lifetime_too_long: says('The token lives longer than the policy allows, by its claim exp.'),
  key_denied: (evidence) => `The denylist shuts out ${key(evidence)}, whatever it has signed.`,
  token_denied: says('The denylist shuts out this token, by its claim jti.'),
  token_issued_too_early: says('The denylist shuts out tokens as old as this, by its claim iat.'),
  caller_denied: (evidence) => `The denylist shuts out ${who(evidence)}.`,
  denylist_unavailable: says(
    'The receiver cannot tell: it has not been able to confirm its denylist for too long.',
  ),
  caller_not_approved: (evidence) => `The policy does not list ${who(evidence)} among its callers.`,
  permission_missing: (evidence) =>
    `The permission ${evidence.permission} is not granted to ${who(evidence)}: the token does not hold it, or the policy does not let this caller have it.`,
  token_id_missing: says('The token has no claim jti by which it could be told from others.'),
  token_replayed: says('The token was used before, and each passes once here.'),
  store_unavailable: says(
    'The receiver cannot tell whether the token was used before: its store does not answer.',
  ),
}

const SENTENCES_ON_KEYS: Readonly<Record<keyof typeof STEP_OF_KEY_REASON, Sentence>> = {
  key_missing: says('The request has no Idempotency-Key header, and this write needs one.'),
  key_invalid: says('The Idempotency-Key is not one key of 1 to 255 visible characters.'),
  key_reused: says('The Idempotency-Key was used before, for another request.'),
  request_in_progress: says('The same request is still running.'),
  outcome_unknown: ({ found }) =>
    found === 'unreadable'
      ? 'The same request was begun before, and its record or result cannot be read.'
      : 'The same request was begun before and ended without a result: nobody knows whether it was done.',
  result_not_stored: says('The same request was answered before, and the answer was not kept.'),
  store_unavailable: says(
    'The receiver cannot tell whether the key was used before: its store does not answer.',
  ),
  timed_out: says('The handler took longer than its transaction may.'),
  conflict: says('Another transaction has won, and this one is undone.'),
  commit_unknown: says('Nobody knows whether the transaction has committed.'),
  commit_refused: says('The database has refused to commit what the handler had written.'),
}

export const SENTENCES_ON_RUNS: Readonly<Record<RunEnd, string>> = {
  result_kept: 'The handler has answered, and its answer is kept for retries.',
  result_too_large: 'The handler has answered, and its answer is too large to be kept.',
  released: 'The handler says that nothing has happened: a retry runs again.',
  refusal_kept: 'The handler has refused, nothing was written, and its answer is kept.',
  uncoupled: 'The handler has ended its transaction itself.',
  transaction_unused: 'The handler has not used its transaction.',
  abandoned: 'The handler ended without an answer: nobody knows what it has done.',
  key_lost: 'The handler took longer than its lease, and another run has taken the key.',
  result_lost: 'The handler has answered, and the store could not be told.',
  rolled_back: 'What the handler had written is rolled back.',
  conflict: 'Another run of the key has committed first.',
}

/** Whether it is about a key, and not a decision about the token of a request with a key. */
export const isOfKey = (event: DecisionEvent | IdempotencyEvent): event is IdempotencyEvent =>
  event.by === 'requireIdempotencyKey' &&
  (event.outcome === 'accepted' || Object.hasOwn(SENTENCES_ON_KEYS, event.reason))

/** What was wrong, in one sentence. */
export function detailOf(event: DecisionEvent | IdempotencyEvent): string {
  if (isOfKey(event)) {
    if (event.outcome === 'accepted') return ''
    return SENTENCES_ON_KEYS[event.reason](event as Evidence)
  }
  return event.outcome === 'accepted' ? '' : SENTENCES[event.reason](event)
}
