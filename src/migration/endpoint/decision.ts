import { channel } from 'node:diagnostics_channel'

/** How a user came to have the account: a closed list. */
export type MigrationAcceptance =
  /** The account was made by this request. */
  | 'created'
  /** It was there already. */
  | 'existing'

/** Why a request was refused: a closed list, for operators. Callers see the status alone. */
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
  | 'in_progress'

/** What has failed, or was still awaited when the time was over: a closed list. */
export type MigrationUndecided =
  | 'tokens_unavailable'
  | 'limiter_unavailable'
  | 'body_unfinished'
  | 'user_unavailable'
  | 'store_unavailable'
  | 'core_unavailable'
  /** The account may have been made; a retry finds it. */
  | 'outcome_unknown'

/**
 * What is known with each decision.
 *
 * @inline
 */
interface DecisionContext {
  /** Tells it from the steps of a run on the same channel. */
  readonly by: 'migrationEndpoint'
  /** Once the token is known to be of this issuer. */
  readonly issuer?: string
  /** Once the request has the right form. */
  readonly externalUserId?: string
  /** Where a record is at fault, and codes of the core or of its client; never values. */
  readonly faults?: readonly string[]
  /** `req.id`, where the app has set it to a number or at most 128 visible ASCII characters. */
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
  /** The caller was turned away. */
  | {
      readonly outcome: 'refused'
      readonly reason: MigrationRefusal
      readonly status: 400 | 401 | 403 | 405 | 409 | 413 | 415 | 429
    }
  /** Nobody can tell; a retry finds what became of it. */
  | { readonly outcome: 'undecided'; readonly reason: MigrationUndecided; readonly status: 503 }

/**
 * What operators see of each request, in `onDecision` and on the diagnostics channel
 * `express-service-auth:migration`. Never a token, login data or a value that an unverified caller
 * chose.
 */
export type MigrationDecision = DecisionContext & Verdict

/** Called with each decision. What it throws or rejects with has no effect. */
export type MigrationDecisionObserver = (decision: MigrationDecision) => unknown

const migration = channel('express-service-auth:migration')

/** Never throws. If nobody listens, the decision is not even made up. */
export function announceMigrationDecision(
  observe: MigrationDecisionObserver | undefined,
  make: () => MigrationDecision,
): void {
  if (observe === undefined && !migration.hasSubscribers) return
  let decision: MigrationDecision | undefined
  try {
    decision = Object.freeze(make())
    const returned = observe?.(decision)
    if (typeof returned === 'object') Promise.resolve(returned).catch(ignore)
  } catch {
    // The answer stands, whatever an observer or the app's request throws.
  }
  if (decision !== undefined && migration.hasSubscribers) migration.publish(decision)
}

function ignore(): void {}
