import { withoutAccountData } from '../../account/without-account-data.js'
import { CoreError } from '../../core/core-error.js'
import type { ImportUser } from '../../core/import-user.js'
import { forEachAtOnce } from '../for-each-concurrently.js'
import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../read-source.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import { lookedUpEntry, type ResultOf } from '../state/journal-entry.js'
import { writeOrdinals } from '../state/record-indexes.js'
import { stateOf } from '../state/run-state.js'
import { ownRowOf, recordsInForce } from './records.js'
import { sendCall } from './send-call.js'

/** Stages all unsent records. Reads the next batch while one is being sent. */
export async function stage(work: Work): Promise<void> {
  const batches = makeBatches(work)
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

/** Sends calls until each user of the batch is staged, found or refused by the core. */
async function sendWhole(work: Work, batch: Batch): Promise<void> {
  const { state } = work.ledger
  let unsent = batch
  while (unsent.length > 0) {
    work.signal.throwIfAborted()
    const unknown = await withoutKnown(work, unsent.slice(0, state.batchLimit))
    if (unknown.length > 0) await sendBatch(work, unknown)
    unsent = unsent.filter(({ ordinal }) => UNSENT.has(stateOf(state, ordinal)))
  }
}

function ignore(): void {}

/** The records of one call, in their order. */
type Batch = readonly SurveyedRecord[]

/** Length of `{"users":[]}`. */
const FRAME_BYTES = 12

async function* makeBatches(work: Work): AsyncGenerator<Batch> {
  const { settings, ledger } = work
  let batch: SurveyedRecord[] = []
  let bytes = FRAME_BYTES
  const unsent = recordsInForce(work, (ordinal) => UNSENT.has(stateOf(ledger.state, ordinal)))
  for await (const record of unsent) {
    const recordBytes = record.bytes + 1
    // The limit may change meanwhile.
    const maxUsers = Math.min(settings.batchUsers, ledger.state.batchLimit)
    const isFull = batch.length >= maxUsers || bytes + recordBytes > settings.batchBytes
    if (batch.length > 0 && isFull) {
      yield batch
      batch = []
      bytes = FRAME_BYTES
    }
    batch.push(record)
    bytes += recordBytes
  }
  if (batch.length > 0) yield batch
}

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
  await writeExisting(work, 'hasRow', rows)
  const accounts = await findAccounts(
    work,
    doubtful.filter(({ ordinal }) => !rows.has(ordinal)),
  )
  await writeExisting(work, 'hasAccount', accounts)
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

async function writeExisting(
  { ledger }: Work,
  list: 'hasAccount' | 'hasRow',
  ordinals: ReadonlySet<number>,
): Promise<void> {
  if (ordinals.size === 0) return
  await ledger.write(lookedUpEntry({ [list]: writeOrdinals(ordinals) }))
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
 * Sends one batch and journals its result.
 *
 * @throws CoreError if the core refused the call, or if too many calls got no reply.
 */
async function sendBatch(work: Work, batch: Batch): Promise<void> {
  const { ledger, core } = work
  const number = ledger.state.batches + 1
  const about = { batch: number, users: batch.length }
  const records = writeOrdinals(batch.map(({ ordinal }) => ordinal))
  // The core normalises the records, so they are sent as they were read.
  const users = batch.map(({ value }) => value as unknown as ImportUser)
  try {
    const result = await sendCall(
      work,
      { kind: 'stage', batch: number, records },
      {
        async send(signal) {
          const reply = await core.stageUsers(users, { signal })
          return reply.outcome === 'rejected' ? rejectionOf(batch, reply.users) : STAGED
        },
        refusalOf: (error) => refusalOf(batch, error),
      },
    )
    if (result === undefined) return
    await ledger.write({ type: 'settled', result })
    if (result.outcome === 'rejected') {
      work.tell('batch_rejected', { batch: number, users: result.users.length })
      return
    }
    work.lostInARow = 0
    work.tell('batch_staged', about)
  } catch (error) {
    // The next call has fewer users.
    if (!(error instanceof CoreError) || error.code !== 'too_large') throw error
  }
}

const STAGED: ResultOf<'staged'> = { outcome: 'staged', by: 'reply' }

type RejectedUsers = readonly { readonly index: number; readonly errors: readonly string[] }[]

function rejectionOf(batch: Batch, rejected: RejectedUsers): ResultOf<'rejected'> {
  const users = rejected.flatMap(({ index, errors }) => {
    const record = batch[index]
    if (record === undefined) return []
    const texts = errors.map((text) => withoutAccountData(text, record.value))
    return [{ record: record.ordinal, line: record.line, errors: texts }]
  })
  if (users.length > 0) return { outcome: 'rejected', users }
  throw new CoreError('the core refuses a call without naming a user of it', {
    code: 'malformed_reply',
    outcome: 'refused',
  })
}

const TOO_LARGE = 'The record alone is larger than what the core, or a proxy before it, takes.'

function refusalOf(
  [first, ...others]: Batch,
  { code }: CoreError,
): ResultOf<'refused' | 'rejected'> {
  if (code !== 'too_large' || first === undefined || others.length > 0) {
    return { outcome: 'refused', code }
  }
  const { ordinal: record, line } = first
  return { outcome: 'rejected', users: [{ record, line, errors: [TOO_LARGE] }] }
}
