import type {
  CoupledEnding,
  CoupledRequest,
  CoupledRun,
  CoupledStore,
} from '../../coupled/store.js'
import { advance, type Life, type LifeEvent } from './life.js'
import type { LiveRun, LiveRuns, UsedToken } from './live-runs.js'
import { fenceOf, open } from './opening.js'
import type { Place } from './place.js'
import type { RecordIds } from './record-ids.js'
import { createTimeLimit } from './time-limit.js'

/** A request, its handler, and where they meet. */
export interface Subject<Tx> {
  readonly request: CoupledRequest
  readonly ids: RecordIds
  readonly work: Parameters<CoupledStore['run']>[1]
  readonly live: LiveRuns<Tx>
  /** Whether the server is to look whether its client is still there. */
  readonly checksConnection: boolean
  /** The handler begins. */
  onRun(): void
}

/** What has become of one transaction. */
export interface Attempted {
  /** How far it had come. */
  readonly life: Life
  /** Absent while nobody knows how it will end. */
  readonly settled: { readonly error: unknown } | 'committed' | undefined
  readonly usedTransaction: boolean
  readonly usedTokens: readonly UsedToken[]
  /** Settles when the transaction has ended. Never rejects. */
  readonly ended: Promise<void>
}

/** Thrown inside a transaction, so that it is rolled back. */
class Undo extends Error {
  override readonly name = 'Undo'
}

/**
 * One transaction: looks whether the handler may run, runs it, and writes the record.
 *
 * @throws whatever `work` rejects with, which is a fault of ours.
 */
export async function attempt<Tx>(place: Place<Tx>, subject: Subject<Tx>): Promise<Attempted> {
  const { runner, limits } = place
  const { acquireMs, transactionMs, resolveMs, isolation } = limits
  const { request, ids, work, live } = subject
  let life: Life = { at: 'opening' }
  let run: LiveRun<Tx> | undefined
  let fault: { readonly error: unknown } | undefined
  const time = createTimeLimit(() => happen({ type: 'struck' }))
  const controller = lazyAbort()

  function happen(event: LifeEvent): void {
    life = advance(life, event)
    if (life.at === 'given_up') controller.abort()
  }
  /** What is not at this stage any more is rolled back. */
  function assertAt(stage: Life['at']): void {
    if (life.at !== stage) throw new Undo()
  }

  async function inside(tx: Tx): Promise<void> {
    if (run !== undefined || life.at !== 'opening') throw new Undo()
    const opened = await open(place, subject, tx)
    happen({ type: 'opened', opened })
    assertAt('running')
    const fence = fenceOf(opened)
    time.set(transactionMs)
    const begun = live.begin(request.requester, request.key, tx)
    run = begun
    subject.onRun()
    const ending = await Promise.race([handle(fence), time.over])
    happen({ type: 'answered', ending, keepsWrites: begun.keepsWrites })
    await record(tx, fence, begun)
  }

  async function handle(fence: number): Promise<CoupledEnding> {
    const handled: CoupledRun = {
      fence,
      get signal() {
        return controller.signal
      },
      answered: () => live.end(request.requester),
    }
    try {
      return await work(handled)
    } catch (error) {
      fault = { error }
      throw new Undo()
    }
  }

  async function record(tx: Tx, fence: number, { usedTokens }: LiveRun<Tx>): Promise<void> {
    if (life.at !== 'recording') throw new Undo()
    const { result } = life.ending
    const { retentionMs } = request
    const usedToken = usedTokens.length > 0
    const keep = place.statements.keep(ids, {
      fence: String(fence),
      result,
      retentionMs,
      usedToken,
    })
    if (runner.commitWith === undefined) await runner.query(tx, keep.text, keep.values)
    happen({ type: 'commits' })
    assertAt('committing')
    if (runner.commitWith !== undefined) await runner.commitWith(tx, [keep])
  }

  time.set(acquireMs + resolveMs)
  const settling: Promise<Attempted['settled']> = runner
    .transaction(inside, { acquireMs, transactionMs, isolation })
    .then(
      () => 'committed',
      (error: unknown) => ({ error }),
    )
  const settled = await Promise.race([settling, time.over.catch(() => undefined)])
  const reached = life
  // A client may give a transaction up whose handler is still at work.
  happen({ type: 'struck' })
  time.clear()
  live.end(request.requester)
  if (fault !== undefined) throw fault.error
  return {
    life: reached,
    settled,
    usedTransaction: run?.usedTransaction === true,
    usedTokens: run?.usedTokens ?? [],
    ended: settling.then(() => {}),
  }
}

/** An abort signal that is made when somebody asks for it: few handlers do. */
function lazyAbort(): { readonly signal: AbortSignal; abort(): void } {
  let controller: AbortController | undefined
  let isAborted = false
  return {
    get signal() {
      controller ??= new AbortController()
      if (isAborted) controller.abort()
      return controller.signal
    },
    abort() {
      isAborted = true
      controller?.abort()
    },
  }
}
