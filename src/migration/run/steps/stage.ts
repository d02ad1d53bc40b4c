import { CoreError } from '../../core/core-error.js'
import { lackedCodeOf, shortened } from '../../core/core-texts.js'
import {
  currentRecords,
  findAtCore,
  type IndexedRecord,
  type MigrationContext,
  userOf,
} from '../records.js'
import { lookedUpEntry, type ResultOf } from '../state/journal-entry.js'
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
  let unsent = batch
  while (unsent.length > 0) {
    ctx.signal.throwIfAborted()
    await journalExisting(ctx, unsent)
    const notAtCore = unsent.filter(isUnsent(ctx))
    if (notAtCore.length > 0) await sendBatch(ctx, notAtCore)
    unsent = notAtCore.filter(isUnsent(ctx))
  }
}

const isUnsent =
  ({ journaled }: MigrationContext) =>
  ({ recordIndex }: Pick<IndexedRecord, 'recordIndex'>): boolean =>
    identityCode(journaled.state, recordIndex) === 'pending'

/** The records of one call, in their order. */
type Batch = readonly IndexedRecord[]

/** Length of `{"users":[]}`. */
const FRAME_BYTES = 12

async function* makeBatches(ctx: MigrationContext): AsyncGenerator<Batch> {
  const { settings } = ctx
  let batch: IndexedRecord[] = []
  let bytes = FRAME_BYTES
  const unsent = currentRecords(ctx, (recordIndex) => isUnsent(ctx)({ recordIndex }))
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
 * Journals which users of the batch the core already has. Looks up only users that are sent again or were in a
 * call without a reply, because `migrationEndpoint` may have created their account, or the call may have taken effect.
 */
async function journalExisting(ctx: MigrationContext, batch: Batch): Promise<void> {
  const { isDoubtful } = ctx.journaled.state
  const doubtful = batch.filter(({ recordIndex }) => isDoubtful[recordIndex] === 1)
  if (doubtful.length === 0) return
  const { rows, accounts } = await findAtCore(ctx, doubtful)
  if (rows.length + accounts.length === 0) return
  await ctx.journaled.write(lookedUpEntry({ hasRow: rows, hasAccount: accounts }))
}

/**
 * Sends one batch and journals its result.
 *
 * @throws CoreError if the core refused the call, or if too many calls got no reply.
 */
async function sendBatch(ctx: MigrationContext, batch: Batch): Promise<void> {
  const { journaled, core } = ctx
  const number = journaled.state.batches + 1
  const records = batch.map(({ recordIndex }) => recordIndex)
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
