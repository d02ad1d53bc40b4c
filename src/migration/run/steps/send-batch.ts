import { withoutAccountData } from '../../account/without-account-data.js'
import { CoreError } from '../../core/core-error.js'
import type { Work } from '../migration-context.js'
import { writeOrdinals } from '../state/record-indexes.js'
import { inGrace } from './finish-in-flight.js'
import { type Batch, usersOf } from './make-batches.js'
import { resolveBatch } from './resolve-batch.js'

/**
 * Sends one batch and writes down what came of it.
 *
 * @throws CoreError when the core has refused the call, or too many have had no reply.
 */
export async function sendBatch(work: Work, batch: Batch): Promise<void> {
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
