import type { Undone } from '../../base/decision/idempotency-event.js'
import type { SingleUseStore } from '../single-use.js'

/** A request under a key, as a coupled store knows it. */
export interface CoupledRequest {
  /** The digest of the key and its scope. */
  readonly key: string
  /** The digest of what must be identical in a retry. */
  readonly fingerprint: string
  /** How long the record is kept, from when it is written. */
  readonly retentionMs: number
  /** Whose transaction it is: what the store's own functions find it by. */
  readonly requester: object
  /** Called once, when the handler uses its transaction after the answer. That use fails. */
  readonly usedLate?: (() => void) | undefined
}

/** A run of a handler inside its transaction. */
export interface CoupledRun {
  /** The transaction's id. */
  readonly fence: number
  /** Aborts once the run can no longer commit. */
  readonly signal: AbortSignal
  /** The answer is complete: from now on the handler can do nothing more in the transaction. */
  answered(): void
}

/** How a handler has answered. A `result` of `undefined` is one that is not kept. */
export type CoupledEnding =
  /** Its writes are to stay. */
  | { readonly type: 'commit'; readonly result: Uint8Array | undefined }
  /** Its writes are to go, unless it has said that they stay; the answer is kept. */
  | { readonly type: 'refuse'; readonly result: Uint8Array | undefined }
  /** Its writes are to go, and nothing is kept. */
  | { readonly type: 'roll_back' }

/** The state of a key whose handler must not run. */
export type CoupledFinding =
  /** Another run of the key is under way. */
  | { readonly outcome: 'running' }
  /** The key belongs to another request: the fingerprint differs. */
  | { readonly outcome: 'mismatch' }
  /** `usedToken`: its run has used a token up, and so must whoever gets the result. */
  | { readonly outcome: 'finished'; readonly result: Uint8Array; readonly usedToken: boolean }
  /** Finished, but the result was not kept. */
  | { readonly outcome: 'result_not_stored' }
  /** There is a result, but not one that can be read. */
  | { readonly outcome: 'unreadable' }

/** The outcome of a request. */
export type CoupledOutcome =
  | CoupledFinding
  /** `usedTransaction`: whether the handler has asked for its transaction. */
  | { readonly outcome: 'committed'; readonly usedTransaction: boolean }
  /** Rolled back, and the answer is kept. */
  | { readonly outcome: 'refusal_kept' }
  /** Rolled back, and the answer could not be kept: another run has committed first, or the store failed. */
  | { readonly outcome: 'refusal_lost'; readonly to: 'conflict' | 'failure' }
  /** Rolled back, and nothing is kept. */
  | { readonly outcome: 'rolled_back' }
  /** The handler has ended the transaction itself. */
  | { readonly outcome: 'uncoupled'; readonly isKept: boolean }
  /** Another run of the key has committed first. */
  | { readonly outcome: 'overtaken'; readonly by: Exclude<CoupledFinding, { outcome: 'running' }> }
  /** Nothing may be told of the answer. `mayRetryNow`: the same request may succeed at once. */
  | {
      readonly outcome: 'undone'
      readonly reason: Undone
      readonly mayRetryNow: boolean
      readonly sqlState?: string
    }
  /** The database has refused to commit what the handler has written. */
  | { readonly outcome: 'commit_refused'; readonly cause: unknown; readonly sqlState?: string }

/**
 * Where a write, the record of its key and its result are one transaction. Of all runs of a key, one
 * at most commits.
 */
export interface CoupledStore extends SingleUseStore {
  /**
   * Runs `work` inside a transaction of its own, at most once, unless the key is known; commits or
   * rolls back as `work` resolves. What `work` resolves with after the outcome is known counts for
   * nothing.
   */
  run(
    request: CoupledRequest,
    work: (run: CoupledRun) => Promise<CoupledEnding>,
  ): Promise<CoupledOutcome>
  /**
   * As `consume` of a `SingleUseStore`, inside the requester's transaction; where that is rolled back,
   * by a statement of its own. Only a crash frees the id.
   */
  consumeWithin(requester: object, id: string, ttlMs: number): Promise<boolean>
}
