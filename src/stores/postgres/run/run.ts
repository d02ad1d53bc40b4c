import { AsyncResource } from 'node:async_hooks'
import { withDeadline } from '../../../base/deadline.js'
import { LazySignal, SignalOf } from '../../../base/lazy-signal.js'
import type { RunOnce, RunOutcome, RunRequest } from '../../../idempotency/run.js'
import { type FirstStatement, noAnswer, type OpeningLimits, SENDING_FIRST } from '../runner.js'
import {
  type BeginResult,
  isEndedByHandler,
  type RecordIds,
  recordIds,
  type TokenValues,
  tokenIds,
} from '../sql/statements.js'
import { IN_FAILED_SQL_TRANSACTION, sqlStateOf } from '../sql-state.js'
import type { StoreContext } from '../store-context.js'
import { LiveRun, type LiveRuns } from './live-runs.js'
import {
  classifyFailure,
  type EndedRun,
  findingOf,
  outcomeOfCommit,
  outcomeOfRollback,
  type RecordedEnding,
  type TransactionEnding,
  type TransactionSettlement,
  transactionEnding,
  unavailable,
  undone,
} from './outcome.js'

/** Creates the `run` function of a coupled store. */
export function createRun<Tx>(store: StoreContext<Tx>, liveRuns: LiveRuns<Tx>): RunOnce {
  return async (request, work) => {
    // Before it gets a connection, so that one retrying caller does not use up the pool.
    if (liveRuns.has(request.recordId)) return { outcome: 'running' }
    const run = new Run(store, liveRuns, { request, work })
    try {
      const settlement = await run.transact()
      return await run.conclude(settlement)
    } finally {
      if (run.live) liveRuns.delete(run.live)
    }
  }
}

/**
 * Thrown inside a transaction to roll it back. One for all, because a stack trace for each replay would cost more than
 * it is worth.
 */
const ROLLBACK = new Error('Rollback')

/**
 * The server's time limit is later than the store's: if the server ended a connection while a library rolls back, the
 * library might return the lost connection to its pool.
 */
const SERVER_GRACE_MS = 500

/** Makes the outcome of a run of what became of its transaction. */
type Conclusion = (settlement: TransactionSettlement) => RunOutcome | Promise<RunOutcome>

/** One transaction: begins, checks whether the handler may run, runs it, and writes the record. */
class Run<Tx> implements EndedRun {
  readonly request: RunRequest
  readonly ids: RecordIds
  readonly token: TokenValues | undefined
  live: LiveRun<Tx> | undefined
  fence: number | undefined
  answeredAt: number | undefined

  readonly #store: StoreContext<Tx>
  readonly #liveRuns: LiveRuns<Tx>
  readonly #work: Parameters<RunOnce>[1]
  /** Sets the limits of the transaction, tries the lock, looks for the record and uses up the token, in this order. */
  readonly #opening: FirstStatement
  /** Aborts when the run can no longer commit. */
  readonly #control = new LazySignal()
  readonly #timeLimit: Promise<never>
  #rejectTimeLimit: (reason: Error) => void = () => {}
  #timer: NodeJS.Timeout | undefined
  /** The first decision; nothing else of the run counts after it. */
  #decision: Conclusion | undefined
  /** Applies to a transaction that fails before a decision. */
  #ifItFails: Conclusion = unavailable
  /** Whether the decision is by the handler's answer. */
  #hasAnswered = false
  /** Whether the runner has called back with the transaction; it may do so once. */
  #isCalled = false
  /** Whether that callback has settled. */
  #isSettled = false
  /** The error that `work` rejected with. */
  #workError: { readonly error: unknown } | undefined

  constructor(
    store: StoreContext<Tx>,
    liveRuns: LiveRuns<Tx>,
    { request, work }: { readonly request: RunRequest; readonly work: Parameters<RunOnce>[1] },
  ) {
    const { recordId, fingerprint, token } = request
    this.request = request
    this.ids = recordIds(recordId, fingerprint, store.schema)
    this.token = token && { ids: tokenIds(token.id, store.schema), ttlMs: token.ttlMs }
    this.#opening = store.statements.begin(this.ids, {
      transactionMs: store.limits.transactionMs + SERVER_GRACE_MS,
      token: this.token,
    })
    this.#store = store
    this.#liveRuns = liveRuns
    this.#work = work
    this.#timeLimit = new Promise((_resolve, reject) => {
      this.#rejectTimeLimit = reject
    })
    this.#timeLimit.catch(() => {})
  }

  conclude(settlement: TransactionSettlement): RunOutcome | Promise<RunOutcome> {
    return (this.#decision ?? this.#ifItFails)(settlement)
  }

  /**
   * Runs the transaction.
   *
   * @throws the rejection of `work`, which is a fault of this package.
   */
  async transact(): Promise<TransactionSettlement> {
    const { acquireMs, transactionMs, resolveMs, isolation } = this.#store.limits
    this.#startTimer(acquireMs + resolveMs)
    // A client may call `inTransaction` in the async context of the code that freed the connection.
    const resource = new AsyncResource('express-service-auth:run')
    const inTransaction = async (tx: Tx): Promise<void> => {
      try {
        await resource.runInAsyncScope(() => this.#within(this.#inTransaction(tx)))
      } finally {
        this.#isSettled = true
      }
    }
    const { runner } = this.#store
    const first = SENDING_FIRST.has(runner) ? this.#opening : undefined
    const limits: OpeningLimits = { acquireMs, transactionMs, isolation, first }
    // Async, so that a runner that throws synchronously fails like one that rejects.
    const transact = async () => runner.transaction(inTransaction, limits)
    const settling: Promise<TransactionSettlement> = transact().then(
      () => ({ type: 'committed' }),
      (error: unknown) => ({ type: 'failed', error }),
    )
    const settlement = await this.#within(settling).catch(
      (): TransactionSettlement => ({ type: 'pending' }),
    )
    // A client that lost its connection may reject while the handler is still running, or before it has begun.
    if (settlement.type !== 'pending' && !this.#isSettled) this.#decide(unavailable)
    if (!this.#hasAnswered) this.#control.abort()
    clearTimeout(this.#timer)
    this.live?.revoke()
    if (this.#workError !== undefined) throw this.#workError.error
    return settlement
  }

  /** Goes on when the time is over, but sends nothing more. */
  async #inTransaction(tx: Tx): Promise<void> {
    this.#assertUndecided()
    if (this.#isCalled) throw ROLLBACK
    this.#isCalled = true
    const { runner, statements } = this.#store
    const { text, rows } = this.#opening
    const begun = statements.readBeginResult(rows ?? (await runner.query(tx, text, [])))
    if (begun.found !== 'nothing') throw this.#decide(() => foundIn(begun))
    this.#assertUndecided()
    const fence = Number(begun.fence)
    // A rounded id would not be that of the transaction, as if the handler had ended it.
    if (!Number.isSafeInteger(fence)) throw new TypeError('the id of a transaction is too large')
    this.fence = fence
    this.#startTimer(this.#store.limits.transactionMs)
    const live = new LiveRun(this.request, tx)
    this.live = live
    this.#liveRuns.add(live)
    const ending = await this.#runHandler(live, fence)
    this.#assertUndecided()
    this.answeredAt = performance.now()
    const isKept = ending.type === 'commit' || (ending.type === 'refuse' && live.keepsWrites)
    const failure = await findFailure(this.#store, live, { fence, ending, isKept })
    this.#assertUndecided()
    if (failure?.type === 'server_failed') throw failure.error
    if (!isKept) {
      const isUncoupled = failure !== undefined
      throw this.#decideByAnswer((settlement) =>
        outcomeOfRollback(this.#store, this, { ending, isUncoupled, settlement }),
      )
    }
    this.#ifItFails = (settlement) =>
      outcomeOfCommit(this.#store, this, { step: 'record', ending, settlement })
    if (failure !== undefined) throw failure.error
    await this.#writeRecord(tx, ending, fence)
    // From here on COMMIT may be sent: by `transaction` once this function has resolved.
    this.#assertUndecided()
    this.#decideByAnswer((settlement) =>
      outcomeOfCommit(this.#store, this, { step: 'commit', ending, settlement }),
    )
  }

  async #runHandler(live: LiveRun<Tx>, fence: number): Promise<TransactionEnding> {
    try {
      const answered = (): void => live.answered()
      const handlerRun = Object.assign(new SignalOf(this.#control), { fence, answered })
      const ending = await this.#work(handlerRun)
      // Calls that the handler did not await must not continue in the next request's transaction.
      await live.endCalls()
      return transactionEnding(ending)
    } catch (error) {
      this.#workError = { error }
      throw ROLLBACK
    }
  }

  /** Without a key, the last statement only checks the transaction, like the one that writes the record. */
  async #writeRecord(tx: Tx, ending: RecordedEnding, fence: number): Promise<void> {
    const { runner, statements } = this.#store
    const { hasKey, retentionMs } = this.request
    const record = { fence: String(fence), result: ending.result, retentionMs }
    const last = hasKey
      ? statements.insertRecord(this.ids, record)
      : statements.assertInTransaction(record.fence)
    await runner.query(tx, last.text, last.values)
  }

  /** Returns what rolls the transaction back. */
  #decide(decision: Conclusion): Error {
    this.#decision ??= decision
    return ROLLBACK
  }

  #decideByAnswer(decision: Conclusion): Error {
    this.#hasAnswered = true
    return this.#decide(decision)
  }

  #assertUndecided(): void {
    if (this.#decision !== undefined) throw ROLLBACK
  }

  /** Restarts the timer, which does not keep the process alive. */
  #startTimer(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      const reason = this.fence === undefined ? 'store_unavailable' : 'timed_out'
      this.#decide(() => undone(reason))
      if (!this.#hasAnswered) this.#control.abort()
      this.#rejectTimeLimit(new Error('timed out'))
    }, ms)
    this.#timer.unref()
  }

  /** Rejects if the timer ends first. */
  #within<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#timeLimit])
  }
}

/** The record comes first: every one of many simultaneous replays finds it, but only one gets the lock. */
function foundIn(begun: Exclude<BeginResult, { found: 'nothing' }>): RunOutcome {
  switch (begun.found) {
    case 'record':
      return findingOf(begun.record)
    case 'running':
      return { outcome: 'running' }
    case 'token used':
      return { outcome: 'token_used' }
    case 'token in use':
      return { outcome: 'undone', reason: 'conflict', retryAfterSeconds: 1 }
  }
}

/**
 * A transaction in which the answer cannot be committed.
 *
 * - `ended`: the run's transaction is no longer open, so its handler ended it.
 * - `server_failed`: the connection was lost, or the server failed a statement whose error the handler
 *   passed on, or swallowed without a rollback to a savepoint.
 */
interface TransactionFailure {
  readonly type: 'ended' | 'server_failed'
  readonly error: unknown
}

/** How a handler has answered in the transaction with the id `fence`. */
interface Answered {
  readonly fence: number
  readonly ending: TransactionEnding
  /** Whether its writes are to be committed. */
  readonly isKept: boolean
}

/** The handler's calls have ended, so only a lost connection is slow to answer. */
const STATE_MS = 500

/**
 * Finds out whether the transaction has failed. Queries its state only in two cases: before a rollback, because a
 * handler may have committed its writes itself, and after a failure of the server, because the handler may
 * have answered it with any status.
 */
async function findFailure<Tx>(
  { runner, statements }: StoreContext<Tx>,
  { tx, usedTransaction, serverFailure }: LiveRun<Tx>,
  { fence, ending, isKept }: Answered,
): Promise<TransactionFailure | undefined> {
  const isRolledBack = !isKept && usedTransaction
  if (!isRolledBack && serverFailure === undefined) return undefined
  const { text, values } = statements.assertInTransaction(String(fence))
  const timeout = noAnswer(STATE_MS)
  const limit = { timeoutMs: STATE_MS, timeoutError: () => timeout }
  let isAborted = false
  try {
    await withDeadline(limit, runner.query(tx, text, values))
  } catch (error) {
    if (isEndedByHandler(error)) return { type: 'ended', error }
    const sqlState = sqlStateOf(error)
    isAborted = sqlState === IN_FAILED_SQL_TRANSACTION
    const isLost = error !== timeout && classifyFailure('record', sqlState) === 'unavailable'
    if (isLost) return { type: 'server_failed', error: (serverFailure ?? { error }).error }
  }
  const isPassedOn = ending.type === 'roll_back' && serverFailure?.isUndone === false
  if (serverFailure === undefined || !(isAborted || isPassedOn)) return undefined
  return { type: 'server_failed', error: serverFailure.error }
}
