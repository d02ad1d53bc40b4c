import { withoutAccountData } from '../../account/without-account-data.js'
import { CoreError } from '../../core/core-error.js'
import { forEachAtOnce } from '../for-each-concurrently.js'
import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../source-index.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import { writeOrdinals } from '../state/record-indexes.js'
import { stateOf } from '../state/run-state.js'
import { inGrace } from './finish-in-flight.js'
import { ownRowOf } from './identity-of-row.js'
import { type Batch, makeBatches, usersOf } from './make-batches.js'
import { recordsIn } from './records-in.js'
import { resolveBatch } from './resolve-batch.js'

/** Stages all unsent records: those of the source, then those of the corrections in their order. */
export async function stage(work: Work): Promise<void> {
  const { corrections } = work.ledger.state
  for (let from = 0; from <= corrections.length; from++) await stageFrom(work, from)
}

/** Reads the next batch while one is being sent. */
async function stageFrom(work: Work, from: number): Promise<void> {
  const { state } = work.ledger
  const batches = makeBatches(recordsIn(work, from, UNSENT), {
    users: () => Math.min(work.settings.batchUsers, state.batchLimit),
    bytes: work.settings.batchBytes,
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

/** Sends calls until each user of the batch is staged, found or refused by the core. */
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

/**
 * Returns the batch without the users that the core already has. Looks up only users that are sent again
 * or were in a call without a reply, because the hook may have created their account or the call may have
 * taken effect.
 */
async function withoutKnown(work: Work, batch: Batch): Promise<Batch> {
  const { state } = work.ledger
  const doubtful = batch.filter(
    ({ ordinal }) => stateOf(state, ordinal) === IDENTITY.again || state.lostOnce[ordinal] === 1,
  )
  if (doubtful.length === 0) return batch
  const rows = await identitiesWithRow(work, doubtful)
  await writeFound(work, 'row', rows)
  const accounts = await findAccounts(
    work,
    doubtful.filter(({ ordinal }) => !rows.has(ordinal)),
  )
  await writeFound(work, 'account', accounts)
  return batch.filter(({ ordinal }) => !rows.has(ordinal) && !accounts.has(ordinal))
}

async function identitiesWithRow(
  work: Work,
  records: readonly SurveyedRecord[],
): Promise<ReadonlySet<number>> {
  const asked = new Set(records.map(({ ordinal }) => ordinal))
  const found = new Set<number>()
  for await (const row of work.core.rows(undefined, { signal: work.signal })) {
    const ordinal = ownRowOf(work, row)
    if (ordinal !== undefined && asked.has(ordinal)) found.add(ordinal)
  }
  return found
}

async function writeFound(
  { ledger }: Work,
  by: 'account' | 'row',
  ordinals: ReadonlySet<number>,
): Promise<void> {
  if (ordinals.size === 0) return
  await ledger.write({ type: 'found', by, of: writeOrdinals(ordinals) })
}

async function findAccounts(
  { core, settings, signal }: Work,
  records: readonly SurveyedRecord[],
): Promise<ReadonlySet<number>> {
  const found = new Set<number>()
  await forEachAtOnce(records, settings.lookUps, async ({ ordinal, externalUserId }) => {
    const coreUserId = await core.coreIdOf(externalUserId, { signal })
    if (coreUserId !== undefined) found.add(ordinal)
  })
  return found
}

/**
 * Sends one batch and journals its outcome.
 *
 * @throws CoreError if the core refused the call, or if too many calls got no reply.
 */
async function sendBatch(work: Work, batch: Batch): Promise<void> {
  const { ledger } = work
  const number = ledger.state.batches + 1
  const of = writeOrdinals(batch.map(({ ordinal }) => ordinal))
  await ledger.write({ type: 'batch_sent', batch: number, of })
  try {
    const staging = await inGrace(work.signal, (signal) =>
      work.core.stageUsers(usersOf(batch), { signal }),
    )
    if (staging.outcome === 'rejected') return await reject(work, batch, staging.users)
    await ledger.write({ type: 'batch_staged', batch: number, by: 'reply' })
    work.lostInARow = 0
    work.tell('batch_staged', { batch: number, users: batch.length })
  } catch (error) {
    if (!(error instanceof CoreError)) throw error
    await failed(work, batch, error)
  }
}

type Rejected = readonly { readonly index: number; readonly errors: readonly string[] }[]

async function reject(work: Work, batch: Batch, rejected: Rejected): Promise<void> {
  const number = work.ledger.state.batches
  const users = rejected.flatMap(({ index, errors }) => {
    const record = batch[index]
    if (record === undefined) return []
    const texts = errors.map((text) => withoutAccountData(text, record.value))
    return [{ of: record.ordinal, line: record.line, errors: texts }]
  })
  if (users.length === 0) {
    await work.ledger.write({ type: 'batch_refused', batch: number, code: 'malformed_reply' })
    throw new CoreError('the core refuses a call without naming a user of it', {
      code: 'malformed_reply',
      outcome: 'refused',
    })
  }
  await work.ledger.write({ type: 'batch_rejected', batch: number, users })
  work.tell('batch_rejected', { batch: number, users: users.length })
}

async function failed(work: Work, batch: Batch, error: CoreError): Promise<void> {
  const number = work.ledger.state.batches
  if (error.outcome === 'unknown') {
    const givenUpAt = work.timing.elapsedMs()
    work.tell('reply_lost', { batch: number, users: batch.length })
    return resolveBatch(work, { givenUpAt, error })
  }
  if (error.code === 'too_large' && batch.length === 1) return tooLarge(work, batch)
  await work.ledger.write({ type: 'batch_refused', batch: number, code: error.code })
  if (error.code !== 'too_large') throw error
}

async function tooLarge(work: Work, [record]: Batch): Promise<void> {
  if (record === undefined) return
  const { ordinal, line } = record
  const errors = ['The record alone is larger than what the core, or a proxy before it, takes.']
  const users = [{ of: ordinal, line, errors }]
  await work.ledger.write({ type: 'batch_rejected', batch: work.ledger.state.batches, users })
}
