import type { ImportUser } from '../../core/import-user.js'
import type { SurveyedRecord } from '../source-index.js'

/** The records of one call, in their order. */
export type Batch = readonly SurveyedRecord[]

interface BatchLimits {
  /** Read for each record, because the limit may change meanwhile. */
  readonly users: () => number
  readonly bytes: number
}

/** Length of `{"users":[]}`. */
const FRAME_BYTES = 12

export async function* makeBatches(
  records: AsyncIterable<SurveyedRecord>,
  limits: BatchLimits,
): AsyncGenerator<Batch> {
  let batch: SurveyedRecord[] = []
  let bytes = FRAME_BYTES
  for await (const record of records) {
    const recordBytes = record.bytes + 1
    const isFull = batch.length >= limits.users() || bytes + recordBytes > limits.bytes
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

/** Returns the records as they were read. The core normalises them. */
export const usersOf = (batch: Batch): ImportUser[] =>
  batch.map(({ value }) => value as unknown as ImportUser)
