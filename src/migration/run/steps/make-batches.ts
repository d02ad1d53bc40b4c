import type { ImportUser } from '../../core/import-user.js'
import type { SurveyedRecord } from '../source-index.js'

/** Records that go in one call, in their order. */
export type Batch = readonly SurveyedRecord[]

interface BatchLimits {
  /** May change while batches are made. */
  readonly users: () => number
  readonly octets: number
}

/** Of `{"users":[]}`. */
const FRAME_OCTETS = 12

export async function* makeBatches(
  records: AsyncIterable<SurveyedRecord>,
  limits: BatchLimits,
): AsyncGenerator<Batch> {
  let batch: SurveyedRecord[] = []
  let octets = FRAME_OCTETS
  for await (const record of records) {
    const recordOctets = record.octets + 1
    const isFull = batch.length >= limits.users() || octets + recordOctets > limits.octets
    if (batch.length > 0 && isFull) {
      yield batch
      batch = []
      octets = FRAME_OCTETS
    }
    batch.push(record)
    octets += recordOctets
  }
  if (batch.length > 0) yield batch
}

/** What was validated is sent as it was read: the core normalises it. */
export const usersOf = (batch: Batch): ImportUser[] =>
  batch.map(({ value }) => value as unknown as ImportUser)
