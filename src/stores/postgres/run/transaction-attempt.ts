import { AsyncResource } from 'node:async_hooks'
import { SignalOf } from '../../../base/lazy-signal.js'
import type {
  CoupledEnding,
  CoupledRequest,
  CoupledStore,
} from '../../../idempotency/coupled/coupled-store.js'
import type { BeginResult } from '../sql/begin-statements.js'
import type { RecordIds } from '../sql/record-ids.js'
import type { StoreContext } from '../store-context.js'
import type { LiveRun, LiveRuns, UsedToken } from './live-runs.js'
import { createRunControl, type RunControl, type RunStage } from './run-stage.js'
import { findFailure } from './transaction-state.js'

/** A request and its handler, with the data that a run needs. */
export interface RunInput<Tx> {
  readonly request: CoupledRequest
  readonly ids: RecordIds
  readonly work: Parameters<CoupledStore['run']>[1]
  readonly liveRuns: LiveRuns<Tx>
  /** Called when the handler begins. */
  onHandlerStart(): void
}

/** How the runner's `transaction` settled. */
export type TransactionSettlement =
  | { readonly type: 'committed' }
  | { readonly type: 'failed'; readonly error: unknown }
  /** It has not settled in time. */
  | { readonly type: 'pending' }

/** The result of one transaction. */
export interface AttemptResult {
  /** The stage that the run reached. */
  readonly stage: RunStage
  readonly settlement: TransactionSettlement
  /** The id of the transaction, once the handler has begun. */
  readonly fence: number | undefined
  /** When the handler had answered, by `performance.now`. */
  readonly answeredAt: number | undefined
  readonly usedTransaction: boolean
  readonly usedTokens: readonly UsedToken[]
  /** Whether the handler ended the transaction itself before it could be rolled back: its writes may be committed. */
  readonly isUncoupled: boolean
  /** Settles when the transaction has ended. Never rejects. */
  readonly ended: Promise<void>
}

/** The state of a transaction in progress. */
interface AttemptContext<Tx> {
  readonly store: StoreContext<Tx>
  readonly input: RunInput<Tx>
  readonly control: RunControl
  /** Whether the runner has called back with the transaction; it may do so once. */
  isCalled: boolean
  /** Whether the callback has settled. */
  isSettled: boolean
  fence: number | undefined
  answeredAt: number | undefined
  run: LiveRun<Tx> | undefined
  isUncoupled: boolean
  /** The error that `work` rejected with. */
  workError: { readonly error: unknown } | undefined
}

/** Thrown inside a transaction to roll it back. */
class Rollback extends Error {
  override readonly name = 'Rollback'
}

/** A shared instance, because a stack trace for each replay would cost more than it is worth. */
const ROLLBACK = new Rollback()

/**
 * The server's time limit is later than the store's, because a connection that the server ends during a
 * rollback may return to the pool as a good one.
 */
const SERVER_GRACE_MS = 500

/**
 * Runs one transaction: acquires it, checks whether the handler may run, runs it, and writes the record.
 *
 * @throws the rejection of `work`, which is a fault of this package.
 */
export async function attemptTransaction<Tx>(
  store: StoreContext<Tx>,
  input: RunInput<Tx>,
): Promise<AttemptResult> {
  const { acquireMs, transactionMs, resolveMs, isolation } = store.limits
  const control = createRunControl()
  const context: AttemptContext<Tx> = {
    store,
    input,
    control,
    isCalled: false,
    isSettled: false,
    fence: undefined,
    answeredAt: undefined,
    run: undefined,
    isUncoupled: false,
    workError: undefined,
  }
  control.startTimer(acquireMs + resolveMs)
  // A client may call `inTransaction` in the async context of the code that freed the connection.
  const resource = new AsyncResource('express-service-auth:run')
  const inTransaction = async (tx: Tx): Promise<void> => {
    try {
      await resource.runInAsyncScope(runInTransaction<Tx>, undefined, context, tx)
    } finally {
      context.isSettled = true
    }
  }
  // Async, so that a runner that throws synchronously fails like one that rejects.
  const transact = async () =>
    store.runner.transaction(inTransaction, { acquireMs, transactionMs, isolation })
  const settling: Promise<TransactionSettlement> = transact().then(
    () => ({ type: 'committed' }),
    (error: unknown) => ({ type: 'failed', error }),
  )
  const settlement = await control
    .withinTimeLimit(settling)
    .catch((): TransactionSettlement => ({ type: 'pending' }))
  // A client that lost its connection may reject before `inTransaction` has settled.
  if (settlement.type === 'failed' && !context.isSettled) {
    control.dispatch({ type: 'server_failed' })
  }
  // Copied first: the result needs the stage that the run reached, and the event below may change it.
  const { stage } = control
  // A client may give up a transaction while its handler is still running: this aborts the handler's signal.
  control.dispatch({ type: 'timeout' })
  control.stopTimer()
  input.liveRuns.end(input.request.requester)
  const { workError, fence, answeredAt, run, isUncoupled } = context
  run?.revoke()
  if (workError !== undefined) throw workError.error
  return {
    stage,
    settlement,
    fence,
    answeredAt,
    usedTransaction: run?.usedTransaction === true,
    usedTokens: run?.usedTokens ?? [],
    isUncoupled,
    ended: settling.then(() => {}),
  }
}

async function runInTransaction<Tx>(context: AttemptContext<Tx>, tx: Tx): Promise<void> {
  const { store, input, control } = context
  if (context.isCalled || control.stage.name !== 'beginning') throw ROLLBACK
  context.isCalled = true
  const result = await control.withinTimeLimit(begin(store, input, tx))
  control.dispatch({ type: 'begun', result })
  assertStage(control, 'running')
  const fence = fenceOf(result)
  control.startTimer(store.limits.transactionMs)
  const run = input.liveRuns.begin(input.request, tx)
  context.run = run
  context.fence = fence
  input.onHandlerStart()
  const ending = await control.withinTimeLimit(runHandler(context, fence))
  context.answeredAt = performance.now()
  control.dispatch({ type: 'answered', ending, keepsWrites: run.keepsWrites })
  const failure = await findFailure(store, { run, fence, stage: control.stage })
  if (failure?.type === 'ended') context.isUncoupled = true
  if (failure?.type === 'server_failed') control.dispatch({ type: 'server_failed' })
  if (failure !== undefined) throw failure.error
  await writeRecord(context, tx, fence)
}

/** Sets the limits of the transaction, tries the lock and looks for the record, in this order. */
async function begin<Tx>(
  { runner, statements, limits }: StoreContext<Tx>,
  { ids }: RunInput<Tx>,
  tx: Tx,
): Promise<BeginResult> {
  const options = { transactionMs: limits.transactionMs + SERVER_GRACE_MS }
  const statement = statements.begin(ids, options)
  if (runner.batch === undefined) {
    return statements.readBeginResult(await runner.query(tx, statement.text, statement.values))
  }
  // A client with `batch` can send the statement together with its `begin`.
  const [rows = []] = await runner.batch(tx, [statement])
  return statements.readBeginResult(rows)
}

/** @throws TypeError if the id of the transaction is not a safe integer. */
function fenceOf(begun: BeginResult): number {
  const fence = begun.found === 'nothing' ? Number(begun.fence) : Number.NaN
  if (Number.isSafeInteger(fence)) return fence
  throw new TypeError('the id of a transaction must be a safe integer')
}

async function runHandler<Tx>(context: AttemptContext<Tx>, fence: number): Promise<CoupledEnding> {
  const { input, control } = context
  try {
    const answered = (): void => input.liveRuns.end(input.request.requester)
    const ending = await input.work(Object.assign(new SignalOf(control), { fence, answered }))
    // Calls that the handler did not await must not continue in the next request's transaction.
    await context.run?.endCalls()
    return ending
  } catch (error) {
    context.workError = { error }
    throw ROLLBACK
  }
}

/** Without a key, the last statement only checks the transaction, like the one that writes the record. */
async function writeRecord<Tx>(context: AttemptContext<Tx>, tx: Tx, fence: number): Promise<void> {
  const { store, input, control, run } = context
  const { runner, statements } = store
  const { stage } = control
  if (stage.name !== 'writing_record') throw ROLLBACK
  const { recordId, retentionMs } = input.request
  const usedToken = run !== undefined && run.usedTokens.length > 0
  const record = { fence: String(fence), result: stage.ending.result, retentionMs, usedToken }
  const last =
    recordId === undefined
      ? statements.assertInTransaction(record.fence)
      : statements.insertRecord(input.ids, record)
  if (runner.commitWith === undefined) {
    await control.withinTimeLimit(runner.query(tx, last.text, last.values))
  }
  // From here on COMMIT may be sent: by `commitWith` below or, without it, by `transaction` once this function
  // has resolved (see `TransactionRunner`).
  control.dispatch({ type: 'commit' })
  assertStage(control, 'committing')
  // Without a time limit, because the transaction may have committed.
  if (runner.commitWith !== undefined) await runner.commitWith(tx, [last])
}

/** Throws, so that the transaction rolls back, unless the run is at the stage. */
function assertStage({ stage }: RunControl, name: RunStage['name']): void {
  if (stage.name !== name) throw ROLLBACK
}
