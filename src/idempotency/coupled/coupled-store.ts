import type { Undone } from '../../base/decision/idempotency-event.js'
import type { SingleUseStore, TokenUse } from '../single-use.js'

/** A request whose handler runs inside a transaction. */
export interface CoupledRequest {
  /** The digest of the key and its scope. Without a key nothing is looked up or stored. */
  readonly recordId: string | undefined
  /** The digest of the parts that must be identical in a retry; empty without a key. */
  readonly fingerprint: string
  /** Milliseconds: how long the record is stored, from when it is written. */
  readonly retentionMs: number
  /**
   * The token that the run uses up, with its writes or its record. If it is rolled back without a record, the
   * token is free again.
   */
  readonly token?: TokenUse | undefined
  /** The owner of the transaction: `transactionOf` and the like find the run by it. */
  readonly requester: object
  /** Called once, if the handler uses its transaction after the answer. That use fails. */
  readonly onLateUse?: (() => void) | undefined
}

/** A run of a handler inside its transaction. */
export interface CoupledRun {
  /** The transaction's id. */
  readonly fence: number
  /** Aborts once the run can no longer commit. */
  readonly signal: AbortSignal
  /** Call it when the answer is complete: from then on the handler can do nothing in the transaction. */
  answered(): void
}

/** The answer of a handler. Without a `result` the answer is not stored. */
export type CoupledEnding =
  /** Commits the handler's writes. */
  | { readonly type: 'commit'; readonly result: Uint8Array | undefined }
  /** Rolls the writes back, unless the handler called `keepWrites`; stores the answer. */
  | { readonly type: 'refuse'; readonly result: Uint8Array | undefined }
  /** Rolls the writes back and stores nothing. */
  | { readonly type: 'roll_back' }

/** The state of a key whose handler must not run. */
export type CoupledFinding =
  /** Another run of the key is in progress. */
  | { readonly outcome: 'running' }
  /** The token is used. */
  | { readonly outcome: 'token_used' }
  /** The key belongs to another request: the fingerprint differs. */
  | { readonly outcome: 'mismatch' }
  | { readonly outcome: 'finished'; readonly result: Uint8Array }
  /** Finished, but the result was not stored. */
  | { readonly outcome: 'result_not_stored' }
  /** There is a result, but it cannot be read. */
  | { readonly outcome: 'unreadable' }

/**
 * The state of a key that has a record.
 *
 * @inline
 */
export type RecordFinding = Exclude<CoupledFinding, { outcome: 'running' | 'token_used' }>

/** The outcome of a request. */
export type CoupledOutcome =
  | CoupledFinding
  /** `usedTransaction`: whether the handler asked for its transaction. */
  | { readonly outcome: 'committed'; readonly usedTransaction: boolean }
  /** Rolled back, and the answer is stored. */
  | { readonly outcome: 'refusal_kept' }
  /** Rolled back, and the answer could not be stored: another run committed first, or the store failed. */
  | { readonly outcome: 'refusal_lost'; readonly to: 'overtaken' | 'failure' }
  /** Rolled back, and nothing is stored. */
  | { readonly outcome: 'rolled_back' }
  /** The handler ended the transaction itself. */
  | { readonly outcome: 'uncoupled' }
  /** Another run of the key committed first. */
  | { readonly outcome: 'overtaken'; readonly by: RecordFinding }
  /** The handler's answer, if there is one, must not be sent. */
  | {
      readonly outcome: 'undone'
      readonly reason: Undone
      /** When a retry may succeed, if that is known. */
      readonly retryAfterSeconds?: number
      readonly sqlState?: string
    }
  /** The database refused to commit the handler's writes. */
  | { readonly outcome: 'commit_refused'; readonly cause: unknown; readonly sqlState?: string }

/**
 * A store whose record and result commit in one transaction with the handler's writes. At most one run
 * of a key commits.
 */
export interface CoupledStore extends SingleUseStore {
  /**
   * Runs `work` at most once, inside a new transaction, unless the key has a record or another run.
   * Commits or rolls back according to the value that `work` resolves to. A value that comes after the
   * outcome is ignored.
   */
  run(
    request: CoupledRequest,
    work: (run: CoupledRun) => Promise<CoupledEnding>,
  ): Promise<CoupledOutcome>
}
