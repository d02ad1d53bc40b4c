import { wrongWiring } from '../../../base/decision/service-auth-error.js'
import type { RunRequest } from '../../../idempotency/run.js'
import { type GuardedTransaction, guardTransaction } from '../guard.js'
import { sqlStateOf } from '../sql-state.js'

/** A handler that runs inside its transaction. */
export interface LiveRun<Tx> {
  readonly request: RunRequest
  readonly tx: Tx
  /** Returns the handler's guard of the transaction object. */
  transaction(): Tx
  /** Resolves when the handler's calls on the transaction have been answered; from then on all calls fail. */
  endCalls(): Promise<void>
  /** Refuses new calls. */
  stop(): void
  /** Makes the transaction object, and everything made from it, fail from now on. */
  revoke(): void
  readonly usedTransaction: boolean
  /** Whether the writes of a refusal are kept. */
  keepsWrites: boolean
  /** The last failure of a statement that the server caused. */
  readonly serverFailure: ServerFailure | undefined
}

/** A failure of a statement in a run's transaction that the server caused. */
interface ServerFailure {
  readonly error: unknown
  /** Whether a later statement succeeded, because the handler rolled back to a savepoint. */
  isUndone: boolean
}

/** The runs whose handlers have not answered yet. */
export interface LiveRuns<Tx> {
  begin(request: RunRequest, tx: Tx): LiveRun<Tx>
  /** Ends a run's handler: its later calls on the transaction are not sent. */
  end(requester: object): void
  /**
   * Returns the requester's run. `caller` is the name of the function for the message.
   *
   * @throws ServiceAuthError if the requester has no run, or has been answered.
   */
  of(requester: object, caller: string): LiveRun<Tx>
}

export function createLiveRuns<Tx>(): LiveRuns<Tx> {
  // A list, no longer than the pool has connections. V8 keeps the outgrown tables of a `Map`, and what they refer
  // to, until a full collection.
  const runs: LiveRun<Tx>[] = []

  return {
    begin(request, tx) {
      let guarded: GuardedTransaction<Tx> | undefined
      let wasUsedLate = false
      const observer = {
        failed(error: unknown) {
          if (isServerFailure(sqlStateOf(error))) run.serverFailure = { error, isUndone: false }
        },
        succeeded() {
          if (run.serverFailure) run.serverFailure.isUndone = true
        },
        refused() {
          if (!wasUsedLate) request.onLateUse?.()
          wasUsedLate = true
        },
      }
      const run = {
        request,
        tx,
        usedTransaction: false,
        serverFailure: undefined as ServerFailure | undefined,
        keepsWrites: false,
        transaction() {
          run.usedTransaction = true
          guarded ??= guardTransaction(tx, observer)
          return guarded.transaction
        },
        async endCalls() {
          await guarded?.callsSettled()
          guarded?.revoke()
        },
        stop: () => guarded?.stop(),
        revoke: () => guarded?.revoke(),
      }
      runs.push(run)
      return run
    },
    end(requester) {
      const at = runs.findIndex(({ request }) => request.requester === requester)
      if (at >= 0) runs.splice(at, 1)[0]?.stop()
    },
    of(requester, caller) {
      const run = runs.find(({ request }) => request.requester === requester)
      if (run !== undefined) return run
      throw wrongWiring(
        `${caller} needs an unanswered request whose requireIdempotencyKey uses this store`,
      )
    },
  }
}

/**
 * Whether a handler's statement failed because of the server, so that a retry may succeed: the server
 * lacks a resource (class 53), is read-only (25006), or ended the connection (57P01 to 57P05; 25P03 and 25P04: by one of
 * its own time limits, because this process stood still).
 */
export const isServerFailure = (sqlState: string | undefined): boolean =>
  sqlState !== undefined && /^(?:53...|25006|25P0[34]|57P0[1-5])$/.test(sqlState)
