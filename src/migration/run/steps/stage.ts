import { CoreError } from '../../core/core-error.js'
import { lackedCodeOf, shortened } from '../../core/core-texts.js'
import {
  currentRecords,
  findAccounts,
  type IndexedRecord,
  type MigrationContext,
  unrecordedRows,
  userOf,
} from '../records.js'
import { lookedUpEntry, type ResultOf, writeRecordIndexes } from '../state/journal-entry.js'
import { identityCode } from '../state/run-state.js'
import { sendCall } from './calls-and-lost-replies.js'

/** Stages all unsent records. Reads the next batch while one is being sent. */
export async function stage(ctx: MigrationContext): Promise<void> {
  const batches = makeBatches(ctx)
  let next = batches.next()
  try {
    for (;;) {
      const { done, value } = await next
      if (done === true) return
      next = batches.next()
      next.catch(() => {})
      await sendUntilResolved(ctx, value)
    }
  } finally {
    // Closes the source after a failure.
    await batches.return(undefined)
  }
}

/** Sends calls until each user of the batch is staged, found at the core or rejected by it. */
async function sendUntilResolved(ctx: MigrationContext, batch: Batch): Promise<void> {
  const { state } = ctx.journaled
  let unsent = batch
  while (unsent.length > 0) {
    ctx.signal.throwIfAborted()
    const notAtCore = await skipExisting(ctx, unsent)
    if (notAtCore.length > 0) await sendBatch(ctx, notAtCore)
    unsent = unsent.filter(({ recordIndex }) => identityCode(state, recordIndex) === 'pending')
  }
}

/** The records of one call, in their order. */
type Batch = readonly IndexedRecord[]

/** Length of `{"users":[]}`. */
const FRAME_BYTES = 12

async function* makeBatches(ctx: MigrationContext): AsyncGenerator<Batch> {
  const { settings, journaled } = ctx
  let batch: IndexedRecord[] = []
  let bytes = FRAME_BYTES
  const unsent = currentRecords(
    ctx,
    (recordIndex) => identityCode(journaled.state, recordIndex) === 'pending',
  )
  for await (const record of unsent) {
    const recordBytes = record.bytes + 1
    const isFull = batch.length >= settings.batchUsers || bytes + recordBytes > settings.batchBytes
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
 * or were in a call without a reply, because `migrationEndpoint` may have created their account, or the
 * call may have taken effect.
 */
async function skipExisting(ctx: MigrationContext, batch: Batch): Promise<Batch> {
  const { state } = ctx.journaled
  const doubtful = batch.filter(({ recordIndex }) => state.isDoubtful[recordIndex] === 1)
  if (doubtful.length === 0) return batch
  const asked = new Set(doubtful.map(({ recordIndex }) => recordIndex))
  const rows = new Set<number>()
  for await (const { recordIndex } of unrecordedRows(ctx)) {
    if (asked.has(recordIndex)) rows.add(recordIndex)
  }
  await writeExisting(ctx, 'hasRow', rows)
  const accounts = await findAccounts(
    ctx,
    doubtful.filter(({ recordIndex }) => !rows.has(recordIndex)),
  )
  await writeExisting(ctx, 'hasAccount', accounts)
  return batch.filter(({ recordIndex }) => !rows.has(recordIndex) && !accounts.has(recordIndex))
}

async function writeExisting(
  { journaled }: MigrationContext,
  list: 'hasAccount' | 'hasRow',
  recordIndexes: ReadonlySet<number>,
): Promise<void> {
  if (recordIndexes.size === 0) return
  await journaled.write(lookedUpEntry({ [list]: writeRecordIndexes(recordIndexes) }))
}

/**
 * Sends one batch and journals its result.
 *
 * @throws CoreError if the core refused the call, or if too many calls got no reply.
 */
async function sendBatch(ctx: MigrationContext, batch: Batch): Promise<void> {
  const { journaled, core } = ctx
  const number = journaled.state.batches + 1
  const records = writeRecordIndexes(batch.map(({ recordIndex }) => recordIndex))
  // Records are sent as they were read, because the core normalises them.
  const users = batch.map(userOf)
  const result = await sendCall(ctx, { kind: 'stage', batch: number, records }, async (signal) => {
    const reply = await core.stageUsers(users, { signal })
    return reply.outcome === 'rejected' ? rejectionOf(batch, reply.users) : STAGED
  })
  // Without a reply, `sendCall` has found out what happened, and journaled it.
  if (result === undefined) return
  await journaled.write({ type: 'settled', result })
  if (result.outcome === 'rejected') {
    ctx.emit('batch_rejected', { batch: number, users: result.users.length })
    return
  }
  ctx.consecutiveLostReplies = 0
  ctx.emit('batch_staged', { batch: number, users: batch.length })
}

const STAGED: ResultOf<'staged'> = { outcome: 'staged', by: 'reply' }

type RejectedUsers = readonly { readonly index: number; readonly errors: readonly string[] }[]

function rejectionOf(batch: Batch, rejected: RejectedUsers): ResultOf<'rejected'> {
  const users = rejected.flatMap(({ index, errors }) => {
    const record = batch[index]
    if (record === undefined) return []
    const code = lackedCodeOf(errors.join(', '))
    const rejection = {
      record: record.recordIndex,
      line: record.line,
      errors: errors.map(shortened),
    }
    return [code === undefined ? rejection : { ...rejection, code }]
  })
  if (users.length > 0) return { outcome: 'rejected', users }
  throw new CoreError('the core rejected a batch without naming any of its users', {
    code: 'malformed_reply',
    outcome: 'refused',
  })
}
