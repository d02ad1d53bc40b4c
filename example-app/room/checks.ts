import type { IdempotencyEvent, Reason } from 'express-service-auth'
import { endOf, type Verdict } from './watch.js'

type KeyReason = Extract<IdempotencyEvent, { outcome: 'refused' | 'undecided' }>['reason']

/** The checks of a receiver in their order, with the reasons that each may end a request for. */
const CHECKS = [
  [
    'Authorization header',
    'credentials_missing credentials_ambiguous authorization_repeated authorization_malformed token_too_long',
  ],
  ['Form of the token', 'token_malformed session_token_malformed'],
  ['Header and algorithm', 'header_parameter_forbidden algorithm_not_allowed token_type_invalid'],
  ['Key', 'key_id_invalid static_key_refused key_unknown key_not_looked_up key_set_unavailable'],
  ['Signature', 'signature_invalid'],
  [
    'Claims',
    'claim_missing claim_invalid identity_missing id_token token_expired token_not_yet_valid token_lifetime_too_long',
  ],
  [
    'Binding',
    'confirmation_unsupported confirmation_missing certificate_missing certificate_mismatch proof_missing proof_invalid',
  ],
  ['Denylist', 'key_denied token_denied token_issued_too_early caller_denied denylist_unavailable'],
  ['Caller approved', 'caller_not_approved'],
  ['Permissions', 'permission_missing'],
  ['Token used once', 'token_id_missing token_replayed'],
  [
    'Idempotency-Key',
    'key_missing key_invalid key_reused request_in_progress outcome_unknown result_not_stored store_unavailable',
  ],
  ['Handler', 'timed_out conflict commit_unknown commit_refused'],
] as const

/** Only writes come to these. */
const OF_WRITES = ['Token used once', 'Idempotency-Key']

export interface Check {
  readonly name: string
  readonly state: 'passed' | 'failed' | 'not reached'
}

/** How far a request came. `isAnswered` tells whether a response with a status below 500 was sent. */
export function checksOf(
  verdicts: readonly Verdict[],
  { isWrite, isAnswered }: { readonly isWrite: boolean; readonly isAnswered: boolean },
): readonly Check[] {
  const names = CHECKS.map(([name]) => name).filter((name) => isWrite || !OF_WRITES.includes(name))
  const ended = endOf(verdicts)
  const failed = ended && names.indexOf(checkThatEnded(ended))
  const isReplay = verdicts.some((verdict) => 'reason' in verdict && verdict.reason === 'replayed')
  const passed = isAnswered && !isReplay ? names.length : names.length - 1
  const end = verdicts.length === 0 ? 0 : (failed ?? passed)
  return names.map((name, index) => {
    if (index === failed) return { name, state: 'failed' }
    return { name, state: index < end ? 'passed' : 'not reached' }
  })
}

function checkThatEnded(verdict: Verdict): (typeof CHECKS)[number][0] {
  const { reason } = verdict as { reason: Reason | KeyReason }
  const found = CHECKS.find(([, reasons]) => reasons.split(' ').includes(reason))
  if (found === undefined) throw new Error(`no check is known for ${reason}`)
  return found[0]
}
