import { AsyncResource } from 'node:async_hooks'
import type {
  CoupledEnding,
  CoupledRequest,
  CoupledStore,
} from '../../../idempotency/coupled/coupled-store.js'
import type { RecordIds } from '../sql/record-ids.js'
import type { Place } from '../store-context.js'
import { fenceOf, open } from './begin-transaction.js'
import type { LiveRun, LiveRuns, UsedToken } from './live-runs.js'
import { createLifeline, type Lifeline } from './run-control.js'
import type { Life } from './run-stage.js'
import { serverFault, stateOf } from './transaction-state.js'

/** A request and its handler, with the data that a run needs. */
export interface Subject<Tx> {
  readonly request: CoupledRequest
  readonly ids: RecordIds
  readonly work: Parameters<CoupledStore['run']>[1]
  readonly live: LiveRuns<Tx>
  /** Whether the server checks during a statement that its client is still connected. */
  readonly checksConnection: boolean
  /** Called when the handler begins. */
  onRun(): void
}

/** The result of one transaction. */
export interface Attempted {
  /** The stage that the run reached. */
  readonly life: Life
  /** `undefined` if the transaction did not settle in time. */
  readonly settled: { readonly error: unknown } | 'committed' | undefined
  /** The id of the transaction, once the handler has begun. */
  readonly fence: number | undefined
  readonly usedTransaction: boolean
  readonly usedTokens: readonly UsedToken[]
  /** Whether the handler ended the transaction itself before it could be rolled back: its writes may be committed. */
  readonly isUncoupled: boolean
  /** Settles when the transaction has ended. Never rejects. */
  readonly ended: Promise<void>
}

/** The state of a transaction in progress. */
interface Going<Tx> {
  readonly place: Place<Tx>
  readonly subject: Subject<Tx>
  readonly lifeline: Lifeline
  /** Whether the client has called back; it may do so once. */
  isEntered: boolean
  /** Whether that callback has settled. */
  isLeft: boolean
  fence: number | undefined
  run: LiveRun<Tx> | undefined
  isUncoupled: boolean
  /** The error that `work` rejected with. */
  fault: { readonly error: unknown } | undefined
}

/** Thrown inside a transaction to roll it back. */
class Undo extends Error {
  override readonly name = 'Undo'
}

/** A shared instance, because a stack trace for each replay would cost more than it is worth. */
const UNDO = new Undo()

/**
 * Runs one transaction: looks whether the handler may run, runs it, and writes the record.
 *
 * @throws the rejection of `work`, which is a fault of this package.
 */
export async function attempt<Tx>(place: Place<Tx>, subject: Subject<Tx>): Promise<Attempted> {
  const { acquireMs, transactionMs, resolveMs, isolation } = place.limits
  const lifeline = createLifeline()
  const going: Going<Tx> = {
    place,
    subject,
    lifeline,
    isEntered: false,
    isLeft: false,
    fence: undefined,
    run: undefined,
    isUncoupled: false,
    fault: undefined,
  }
  lifeline.limit(acquireMs + resolveMs)
  // A client may call it in the async context of the code that freed the connection.
  const inside = AsyncResource.bind(
    (tx: Tx) =>
      proceed(going, tx).finally(() => {
        going.isLeft = true
      }),
    'express-service-auth:run',
  )
  // Async, so that a runner that throws synchronously fails like one that rejects.
  const transact = async () =>
    place.runner.transaction(inside, { acquireMs, transactionMs, isolation })
  const settling: Promise<Attempted['settled']> = transact().then(
    () => 'committed',
    (error: unknown) => ({ error }),
  )
  const settled = await lifeline.within(settling).catch(() => undefined)
  // A client that lost its connection may reject before `inside` has settled.
  if (typeof settled === 'object' && !going.isLeft) lifeline.happen({ type: 'failed' })
  const { life } = lifeline
  // A client may give up a transaction while its handler is still running.
  lifeline.happen({ type: 'struck' })
  lifeline.end()
  subject.live.end(subject.request.requester)
  const { fault, fence, run } = going
  run?.revoke()
  if (fault !== undefined) throw fault.error
  return {
    life,
    settled,
    fence,
    usedTransaction: run?.usedTransaction === true,
    usedTokens: run?.usedTokens ?? [],
    isUncoupled: going.isUncoupled,
    ended: settling.then(() => {}),
  }
}

async function proceed<Tx>(going: Going<Tx>, tx: Tx): Promise<void> {
  const { place, subject, lifeline } = going
  if (going.isEntered || lifeline.life.at !== 'opening') throw UNDO
  going.isEntered = true
  const opened = await lifeline.within(open(place, subject, tx))
  lifeline.happen({ type: 'opened', opened })
  assertAt(lifeline, 'running')
  const fence = fenceOf(opened)
  lifeline.limit(place.limits.transactionMs)
  const { request, live } = subject
  const run = live.begin(request, tx)
  going.run = run
  going.fence = fence
  subject.onRun()
  const ending = await lifeline.within(handle(going, fence))
  lifeline.happen({ type: 'answered', ending, keepsWrites: run.keepsWrites })
  await lookAtTransaction(going, tx, fence)
  await record(going, tx, fence)
}

/**
 * Checks the transaction before a rollback, because writes that a handler committed itself are kept, and
 * after a failure of the server, which the handler may have answered with any status.
 *
 * @throws the error with which the server failed, or which shows that the transaction has ended.
 */
async function lookAtTransaction<Tx>(going: Going<Tx>, tx: Tx, fence: number): Promise<void> {
  const { place, lifeline, run } = going
  const { life } = lifeline
  const failure = run?.serverFailure
  const isUndone = life.at === 'undoing' && run?.usedTransaction === true
  if (!isUndone && failure === undefined) return
  const state = await stateOf(place, tx, fence)
  if (state.is === 'ended') {
    going.isUncoupled = true
    if (life.at === 'recording') throw state.error
    return
  }
  const fault = serverFault({ life, state, failure })
  if (fault === undefined) return
  lifeline.happen({ type: 'failed' })
  throw fault.error
}

async function handle<Tx>(going: Going<Tx>, fence: number): Promise<CoupledEnding> {
  const { subject, lifeline } = going
  const { request, live, work } = subject
  try {
    const ending = await work({
      fence,
      get signal() {
        return lifeline.signal
      },
      answered: () => live.end(request.requester),
    })
    // Calls that the handler did not await must not continue in the next request's transaction.
    await going.run?.callsEnded()
    return ending
  } catch (error) {
    going.fault = { error }
    throw UNDO
  }
}

async function record<Tx>(going: Going<Tx>, tx: Tx, fence: number): Promise<void> {
  const { place, subject, lifeline, run } = going
  const { runner, statements } = place
  const { life } = lifeline
  if (life.at !== 'recording') throw UNDO
  const keep = statements.keep(subject.ids, {
    fence: String(fence),
    result: life.ending.result,
    retentionMs: subject.request.retentionMs,
    usedToken: run !== undefined && run.usedTokens.length > 0,
  })
  if (runner.commitWith === undefined) {
    await lifeline.within(runner.query(tx, keep.text, keep.values))
  }
  lifeline.happen({ type: 'commits' })
  assertAt(lifeline, 'committing')
  // Does not use `lifeline.within`, because the transaction may have committed.
  if (runner.commitWith !== undefined) await runner.commitWith(tx, [keep])
}

/** Throws, so that the transaction rolls back, unless the run is at `stage`. */
function assertAt({ life }: Lifeline, stage: Life['at']): void {
  if (life.at !== stage) throw UNDO
}
