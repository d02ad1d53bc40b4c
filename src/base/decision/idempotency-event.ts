import { openChannel, publish } from './observers.js'

/** Why the handler did not run, although the request was authenticated. */
export type IdempotencyRefusal =
  | 'key_missing'
  | 'key_invalid'
  | 'key_reused'
  | 'request_in_progress'
  | 'outcome_unknown'
  | 'result_not_stored'

/** How a run ended after its key was reserved. */
export type RunEnd =
  /** Its result is kept for retries. */
  | 'result_kept'
  /** Its response was streamed and not stored. */
  | 'result_too_large'
  /** It ended without a response. */
  | 'abandoned'
  /** Its handler called `release()`. */
  | 'released'
  /** Another run has taken the key meanwhile. */
  | 'key_lost'
  /** Its result could not be stored. */
  | 'result_lost'
  /** Its writes are rolled back, and its answer, a refusal, is kept for retries. */
  | 'refusal_kept'
  /** Its writes are rolled back, and nothing is kept. */
  | 'rolled_back'
  /** Another run of the key has committed first. */
  | 'conflict'
  /** Its handler ended the transaction itself; its answer is stored separately. */
  | 'uncoupled'
  /** Its handler never used its transaction: the likeliest mistake. Published in addition to `result_kept`. */
  | 'transaction_unused'

/** Why a caller got a 503 instead of the handler's answer. */
export type Undone =
  /** The database could not be reached, or the connection was lost. */
  | 'store_unavailable'
  /** The handler took too long. */
  | 'timed_out'
  /** The transaction lost against another one. */
  | 'conflict'
  /** It is unknown whether the transaction committed. */
  | 'commit_unknown'

/**
 * Fields of every event.
 *
 * @inline
 */
interface CommonFields {
  /** The middleware that publishes it. */
  readonly by: 'requireIdempotencyKey'
  /** The verified caller. */
  readonly caller: string
  /** The digest that names the key's record in the store, once there is a key. */
  readonly record?: string
  /** `req.id`, if the app set it to a number or at most 128 visible ASCII characters. */
  readonly requestId?: string | number
}

/**
 * The outcome of a request with a key.
 *
 * @inline
 */
type IdempotencyDetails =
  /** A run begins; `fence` grows with every run of the key. */
  | { readonly outcome: 'accepted'; readonly reason: 'reserved'; readonly fence: number }
  /** There is no key, and the handler runs (`missingKey: 'run'`). */
  | { readonly outcome: 'accepted'; readonly reason: 'key_missing' }
  /** A retry got the kept answer, of this `status`. */
  | { readonly outcome: 'accepted'; readonly reason: 'replayed'; readonly status: number }
  /**
   * The answer of `status` could not be sent, because an outer middleware failed. Published in addition to the end
   * of the run, or, for a retry (without a `fence`), instead of `replayed`.
   */
  | {
      readonly outcome: 'accepted'
      readonly reason: 'answer_unsent'
      readonly status: number
      readonly fence?: number
    }
  /** The handler did not run; `status` is what the caller got. */
  | {
      readonly outcome: 'refused'
      readonly reason: Exclude<IdempotencyRefusal, 'outcome_unknown'>
      readonly status: 400 | 409 | 422
    }
  /** The handler did not run, because the outcome of an earlier run is unknown. */
  | {
      readonly outcome: 'refused'
      readonly reason: 'outcome_unknown'
      /** A run that ended without a result, or a record or result that cannot be read. */
      readonly found: 'abandoned' | 'unreadable'
      readonly status: 400 | 409 | 422
    }
  /** The caller gets the 503, and nothing of a handler's answer. */
  | {
      readonly outcome: 'undecided'
      readonly reason: Undone
      readonly status: 503
      /** The SQLSTATE of the database, if there was one. */
      readonly sqlState?: string
      readonly fence?: number
    }
  /** The database has refused to commit what the handler had written: `next(error)`. */
  | {
      readonly outcome: 'undecided'
      readonly reason: 'commit_refused'
      readonly sqlState?: string
      readonly fence: number
    }
  /** A handler tried to use its transaction after the answer, and could not. `route` is its method and pattern. */
  | {
      readonly outcome: 'accepted'
      readonly reason: 'transaction_used_late'
      readonly fence: number
      readonly route?: string
    }
  /** How a run ended; `status` is that of the handler's answer. */
  | {
      readonly outcome: 'accepted'
      readonly reason: RunEnd
      readonly fence: number
      readonly status?: number
    }

/** Event on the diagnostics channel `express-service-auth:idempotency`. */
export type IdempotencyEvent = CommonFields & IdempotencyDetails

const idempotency = openChannel('idempotency')

export const isIdempotencyObserved = (): boolean => idempotency.hasSubscribers

export function announceIdempotency(event: () => IdempotencyEvent): void {
  publish(idempotency, event)
}
