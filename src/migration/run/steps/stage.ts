import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../source-index.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import { stateOf } from '../state/run-state.js'
import { type Batch, makeBatches } from './make-batches.js'
import { recordsIn } from './records-in.js'
import { sendBatch } from './send-batch.js'
import { withoutKnown } from './skip-existing.js'

/** Stages whatever has not been sent: of the source, then of the corrections in their order. */
export async function stage(work: Work): Promise<void> {
  const { corrections } = work.ledger.state
  for (let from = 0; from <= corrections.length; from++) await stageFrom(work, from)
}

/** The next batch is made while one is in flight. */
async function stageFrom(work: Work, from: number): Promise<void> {
  const { state } = work.ledger
  const batches = makeBatches(recordsIn(work, from, UNSENT), {
    users: () => Math.min(work.settings.batchUsers, state.batchLimit),
    octets: work.settings.batchBytes,
  })
  let next = batches.next()
  for (;;) {
    const { done, value } = await next
    if (done === true) return
    next = batches.next()
    next.catch(ignore)
    await sendWhole(work, value)
  }
}

const UNSENT: ReadonlySet<IdentityCode> = new Set([IDENTITY.pending, IDENTITY.again])

const isUnsent = (work: Work, { ordinal }: SurveyedRecord): boolean =>
  UNSENT.has(stateOf(work.ledger.state, ordinal))

/** Sends until each user of the batch is staged, found or refused by the core. */
async function sendWhole(work: Work, made: Batch): Promise<void> {
  let unsent = made
  while (unsent.length > 0) {
    work.signal.throwIfAborted()
    const unknown = await withoutKnown(work, unsent.slice(0, work.ledger.state.batchLimit))
    if (unknown.length > 0) await sendBatch(work, unknown)
    unsent = unsent.filter((record) => isUnsent(work, record))
  }
}

function ignore(): void {}
