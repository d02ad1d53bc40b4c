import { notify, openChannel } from './observers.js'

/** Whether the account is new. This list is closed. */
export type MigrationAcceptance =
  /** This request created the account. */
  | 'created'
  /** The account existed already. */
  | 'existing'

/** Why a request was refused, for operators. Callers get only the status. This list is closed. */
export type MigrationRefusal =
  | 'credentials_missing'
  | 'authorization_malformed'
  | 'token_unknown'
  | 'credential_limited'
  | 'method_not_allowed'
  | 'media_type_unsupported'
  | 'body_too_large'
  | 'body_cut_off'
  | 'body_malformed'
  | 'user_limited'
  | 'organization_not_allowed'
  | 'connection_not_allowed'
  | 'user_unknown'
  | 'record_differs'
  | 'record_not_allowed'
  | 'record_invalid'
  | 'account_conflict'
  | 'account_foreign'

/** The operation that failed, or that was pending at the timeout. This list is closed. */
export type MigrationUndecided =
  | 'tokens_unavailable'
  | 'limiter_unavailable'
  | 'body_unfinished'
  | 'user_unavailable'
  | 'core_unavailable'
  /** The account may have been created. A retry finds it. */
  | 'outcome_unknown'

/**
 * Context of each decision.
 *
 * @inline
 */
interface DecisionContext {
  /** Distinguishes it from the events of a run on the same channel. */
  readonly by: 'migrationEndpoint'
  /** The issuer of the token, once it is known. */
  readonly issuer?: string
  /** The user of the request, once the request has been parsed. */
  readonly externalUserId?: string
  /** Paths and codes of errors in a record, and codes of the core or of its client; never values. */
  readonly faults?: readonly string[]
  /** `req.id`, if the app set it to a number or at most 128 visible ASCII characters. */
  readonly requestId?: string | number
}

/**
 * The outcome, its reason, and the status that the caller got.
 *
 * @inline
 */
type Verdict =
  /** The caller got the id of the account. */
  | { readonly outcome: 'accepted'; readonly reason: MigrationAcceptance; readonly status: 200 }
  /** The request was refused. */
  | {
      readonly outcome: 'refused'
      readonly reason: MigrationRefusal
      readonly status: 400 | 401 | 403 | 405 | 413 | 415 | 429
    }
  /** The outcome is unknown. A retry determines it. */
  | { readonly outcome: 'undecided'; readonly reason: MigrationUndecided; readonly status: 503 }

/**
 * The decision on a request, for operators, passed to `onDecision` and published on the diagnostics channel
 * `express-service-auth:migration`. It never contains a token, login data or a value that an unverified
 * caller chose.
 */
export type MigrationDecision = DecisionContext & Verdict

/** Called with each decision. If it throws or rejects, the error is ignored. */
export type MigrationDecisionObserver = (decision: MigrationDecision) => unknown

/** Number of identities in each state. Each identity of the source counts once. */
export interface MigrationCounts {
  /** Not a user that the core accepts, or its login is in use. */
  readonly invalid: number
  /** Not sent yet, or to be sent again. */
  readonly pending: number
  /** Sent, or found at the core already; not yet reconciled. */
  readonly staged: number
  /** Failed at the core; needs a correction. */
  readonly failed: number
  /** Without an account after all imports have ended. */
  readonly missing: number
  /** With an account that differs from the record. */
  readonly differs: number
  /** With an account that another identity has too. */
  readonly shared: number
  /** Verified: one account, which matches the record. */
  readonly reconciled: number
  /** With a difference that a person has accepted. */
  readonly accepted: number
  /** Left out by a person. */
  readonly left_out: number
}

/**
 * An event of a run, passed to `onProgress` and published on the channel
 * `express-service-auth:migration`. It contains neither secrets nor account data.
 */
export interface MigrationProgress {
  /** Distinguishes it from the decisions of `migrationEndpoint` on the same channel. */
  readonly by: 'migration'
  /** The kind of event. */
  readonly type:
    | 'preflight'
    | 'batch_staged'
    | 'batch_rejected'
    | 'reply_lost'
    | 'reply_resolved'
    | 'waiting'
    | 'row_failed'
    | 'rows_deleted'
    /** The run looked up, or imported directly, users whose rows it deleted. */
    | 'settled'
    | 'corrected'
    | 'reconciling'
    | 'ended'
  /** Number of identities in each state. */
  readonly counts: MigrationCounts
  /** Number of identities in the source. */
  readonly identities: number
  /** Rows that wait at the core. With the type `waiting`. */
  readonly rows?: { readonly new: number; readonly processing: number }
  /** Number of users that the event concerns. */
  readonly users?: number
  /** Number of the batch, from 1. */
  readonly batch?: number
}

const migration = openChannel('migration')

type Observer<Event> = (event: Event) => unknown

/** Whether there are observers or subscribers. */
export const isMigrationObserved = (observe: Observer<never> | undefined): boolean =>
  observe !== undefined || migration.hasSubscribers

/**
 * Publishes a decision or a step of a run. Never throws. Without observers and subscribers, `make` is not
 * called.
 */
export function announceMigration<Event extends MigrationDecision | MigrationProgress>(
  observe: Observer<Event> | undefined,
  make: () => Event,
): void {
  if (!isMigrationObserved(observe)) return
  let event: Event
  try {
    event = Object.freeze(make())
  } catch {
    // An error of reading the app's request does not affect the answer.
    return
  }
  if (observe !== undefined) notify(observe, event)
  migration.publish(event)
}
