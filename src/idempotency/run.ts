import type { RunEnd, Undone } from '../base/decision/idempotency-event.js'
import type { SingleUseStore, TokenUse } from './single-use.js'

/** The handler's view of its run, as `req.idempotency`. */
export interface IdempotencyContext {
  /** The caller's key, unquoted. */
  readonly key: string
  /** A safe integer that grows with every run of the key: a fencing token for what the run writes. */
  readonly fence: number
  /** Aborts once the run may no longer be the only one with the key. */
  readonly signal: AbortSignal
  /**
   * Frees the key at the end of the run instead of storing the result, because nothing has happened. On a
   * coupled store, such as `postgresStore`, it also rolls back the handler's writes.
   */
  release(): void
}

/** A request whose handler is to run once for its key. */
export interface RunRequest {
  /** The digest of the key and its scope; without a key random. */
  readonly recordId: string
  /** The digest of the parts that must be identical in a retry; empty without a key. */
  readonly fingerprint: string
  /** Without a key nothing is stored. */
  readonly hasKey: boolean
  /** Milliseconds: how long the record is stored, from when it is written. */
  readonly retentionMs: number
  /**
   * The token that the run of a coupled store uses up, with its writes or its record. If it is rolled back without a
   * record, the token is free again.
   */
  readonly token?: TokenUse | undefined
  /** The owner of the run: `transactionOf` and the like find a transaction by it. */
  readonly requester: object
  /** Called once, if the handler uses its transaction after the answer. That use fails. */
  readonly onLateUse?: (() => void) | undefined
}

/** A run of a handler under its key. */
export interface HandlerRun {
  /** Grows with every run of the key. */
  readonly fence: number
  /** Aborts once the run may no longer be the only one with the key, or can no longer commit. */
  readonly signal: AbortSignal
  /** Call it when the answer is complete: no lease is renewed any more, and no transaction can be used. */
  answered(): void
}

/** How a handler ended. */
export type HandlerEnding =
  /** With an answer. Without a `result` it is not stored: there is no key, or it is sent as a stream. */
  | {
      readonly type: 'answered'
      readonly status: number
      readonly result: Uint8Array | undefined
    }
  /** It says that nothing has happened. */
  | { readonly type: 'released' }
  /** It can no longer answer. */
  | { readonly type: 'aborted' }

/** The state of a key that has a record. */
export type RecordFinding =
  /** The key belongs to another request: the fingerprint differs. */
  | { readonly outcome: 'mismatch' }
  /** An earlier run has ended; this is its result. */
  | { readonly outcome: 'finished'; readonly result: Uint8Array }
  /** Finished, but the result was not stored. */
  | { readonly outcome: 'result_not_stored' }
  /** There is a record, but it cannot be read. */
  | { readonly outcome: 'unreadable' }

/** Why a handler must not run. */
export type Finding =
  | RecordFinding
  /** Another run of the key is in progress. `leaseLeftMs`: until its lease ends, if it has one. */
  | { readonly outcome: 'running'; readonly leaseLeftMs?: number }
  /** A run's lease has ended and it has left no result. */
  | { readonly outcome: 'abandoned' }
  /** The token is used. */
  | { readonly outcome: 'token_used' }

/** The outcome of a request. */
export type RunOutcome =
  | Finding
  /**
   * The handler's answer may be sent. `end` says what became of the run; `undefined` if there is nothing to say of a
   * run without a key.
   */
  | {
      readonly outcome: 'answered'
      readonly end: RunEnd | undefined
      /** Whether the handler wrote nothing in its transaction, although it answered with success. */
      readonly isTransactionUnused?: boolean
    }
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
 * Runs `work` at most once, unless the key has a record or another run, and settles the run by what `work` resolves
 * to. The outcome comes before the answer is sent.
 */
export type RunOnce = (
  request: RunRequest,
  work: (run: HandlerRun) => Promise<HandlerEnding>,
) => Promise<RunOutcome>

/**
 * A store whose record and result commit in one transaction with the handler's writes. At most one run
 * of a key commits.
 */
export interface CoupledStore extends SingleUseStore {
  /**
   * Runs `work` at most once, inside a new transaction, unless the key has a record or another run. Commits or rolls
   * back by the status of the answer that `work` resolves to. A value that comes after the outcome is ignored.
   */
  run(request: RunRequest, work: (run: HandlerRun) => Promise<HandlerEnding>): Promise<RunOutcome>
}
