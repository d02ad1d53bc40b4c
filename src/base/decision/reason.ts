import type { DependencyFailure } from './dependency.js'

/** Why a request was refused: a closed list, for operators. Callers never see it. */
export type RefusalReason =
  | 'credentials_missing'
  | 'credentials_ambiguous'
  | 'authorization_repeated'
  | 'authorization_malformed'
  | 'token_too_long'
  | 'token_malformed'
  | 'algorithm_not_allowed'
  | 'token_type_invalid'
  | 'key_id_invalid'
  | 'header_parameter_forbidden'
  | 'static_key_refused'
  | 'key_denied'
  | 'key_unknown'
  | 'signature_invalid'
  | 'id_token'
  | 'confirmation_unsupported'
  | 'confirmation_missing'
  | 'certificate_missing'
  | 'certificate_mismatch'
  | 'proof_missing'
  | 'proof_invalid'
  | 'claim_missing'
  | 'claim_invalid'
  | 'token_expired'
  | 'token_not_yet_valid'
  | 'token_lifetime_too_long'
  | 'token_denied'
  | 'token_issued_too_early'
  | 'token_id_missing'
  | 'token_replayed'
  | 'session_token_malformed'
  | 'identity_missing'
  | 'caller_denied'
  | 'caller_not_approved'
  | 'permission_missing'

/** Why a request could not be decided. `key_not_looked_up`: the key set may not be fetched so soon again. */
export type UndecidedReason =
  | 'key_not_looked_up'
  | 'key_set_unavailable'
  | 'denylist_unavailable'
  | 'store_unavailable'

/** Why a request was not accepted. */
export type Reason = RefusalReason | UndecidedReason

/** Details of a refusal, for operators. Holds nothing that an unverified caller chose. */
export interface Evidence {
  /** The claim that was missing or wrong. */
  readonly claim?: string
  /** The member of the proof of possession that was missing or wrong. */
  readonly member?: string
  /** The permission that was missing. */
  readonly permission?: string
  /** The key id, when it is in the key set. */
  readonly keyId?: string
  /** The verified caller. */
  readonly caller?: string
}

/** A decision not to accept the request. */
export interface Denial {
  readonly ok: false
  readonly reason: Reason
  readonly evidence: Evidence
  /** The failed dependency that leaves the request undecided. */
  readonly failure?: DependencyFailure
}

/** A value, or the reason why the request is not accepted. */
export type Decision<T> = { readonly ok: true; readonly value: T } | Denial

const NO_EVIDENCE: Evidence = Object.freeze({})

export const allow = <T>(value: T): Decision<T> => ({ ok: true, value })

/** `failure` says which dependency leaves the request undecided. */
export const deny = (
  reason: Reason,
  evidence: Evidence = NO_EVIDENCE,
  failure?: DependencyFailure,
): Denial => ({ ok: false, reason, evidence, ...(failure !== undefined && { failure }) })
