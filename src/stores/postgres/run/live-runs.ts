import { wrongWiring } from '../../../base/decision/service-auth-error.js'
import type { RunRequest } from '../../../idempotency/run.js'
import { type GuardedTransaction, type GuardObserver, guardTransaction } from '../guard.js'
import { sqlStateOf } from '../sql-state.js'

/** A failure of a statement in a run's transaction that the server caused. */
interface ServerFailure {
  readonly error: unknown
  /** Whether a later statement succeeded, because the handler rolled back to a savepoint. */
  isUndone: boolean
}

/** A handler that runs inside its transaction. */
export class LiveRun<Tx> implements GuardObserver {
  readonly request: RunRequest
  readonly tx: Tx
  usedTransaction = false
  /** Whether the writes of a refusal are kept. */
  keepsWrites = false
  /** The last failure of a statement that the server caused. */
  serverFailure: ServerFailure | undefined
  isAnswered = false
  #guarded: GuardedTransaction<Tx> | undefined
  #wasUsedLate = false

  constructor(request: RunRequest, tx: Tx) {
    this.request = request
    this.tx = tx
  }

  /** Returns the handler's guard of the transaction object. */
  transaction(): Tx {
    this.usedTransaction = true
    this.#guarded ??= guardTransaction(this.tx, this)
    return this.#guarded.transaction
  }

  /** The answer is complete: refuses new calls on the transaction. */
  answered(): void {
    this.isAnswered = true
    this.#guarded?.stop()
  }

  /** Resolves when the handler's calls on the transaction have been answered; from then on all calls fail. */
  async endCalls(): Promise<void> {
    await this.#guarded?.callsSettled()
    this.revoke()
  }

  /** Makes the transaction object, and everything made from it, fail from now on. */
  revoke(): void {
    this.isAnswered = true
    this.#guarded?.revoke()
  }

  succeeded(): void {
    if (this.serverFailure) this.serverFailure.isUndone = true
  }

  failed(error: unknown): void {
    if (isServerFailure(sqlStateOf(error))) this.serverFailure = { error, isUndone: false }
  }

  refused(): void {
    if (!this.#wasUsedLate) this.request.onLateUse?.()
    this.#wasUsedLate = true
  }
}

/** The runs of a store whose handlers have begun, until their outcome is known. */
export class LiveRuns<Tx> {
  /** A list, because V8 keeps the outgrown tables of a `Map`, and what they refer to, until a full collection. */
  readonly #runs: LiveRun<Tx>[] = []

  add(run: LiveRun<Tx>): void {
    this.#runs.push(run)
  }

  delete(run: LiveRun<Tx>): void {
    this.#runs.splice(this.#runs.indexOf(run), 1)
  }

  /** Whether a run of this record is among them. */
  has(recordId: string): boolean {
    return this.#runs.some(({ request }) => request.recordId === recordId)
  }

  /**
   * Returns the requester's run. `caller` is the name of the function for the message.
   *
   * @throws ServiceAuthError if the requester has no run, or has been answered.
   */
  of(requester: object, caller: string): LiveRun<Tx> {
    const run = this.#runs.find(({ request }) => request.requester === requester)
    if (run?.isAnswered === false) return run
    throw wrongWiring(
      `${caller} needs an unanswered request whose requireIdempotencyKey uses this store`,
    )
  }
}

/**
 * Whether a handler's statement failed because of the server, so that a retry may succeed: the server
 * lacks a resource (class 53), is read-only (25006), or ended the connection (57P01 to 57P05; 25P03 and 25P04: by one of
 * its own time limits, because this process stood still).
 */
export const isServerFailure = (sqlState: string | undefined): boolean =>
  sqlState !== undefined && /^(?:53...|25006|25P0[34]|57P0[1-5])$/.test(sqlState)
