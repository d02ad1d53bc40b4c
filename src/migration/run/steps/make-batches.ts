import type { ImportUser } from '../../core/import-user.js'
import type { SurveyedRecord } from '../survey.js'

/** Records that go in one call, in their order. */
export type Batch = readonly SurveyedRecord[]

interface BatchLimits {
  /** May change while batches are made. */
  readonly users: () => number
  readonly octets: number
  /** Records on the two sides of this never share a batch. */
  readonly sideOf: (ordinal: number) => boolean
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
    const withRecord = octets + record.octets + 1
    if (batch.length > 0 && !fits(record)) {
      yield batch
      batch = []
      octets = FRAME_OCTETS
    }
    batch.push(record)
    octets += record.octets + 1

    function fits({ ordinal }: SurveyedRecord): boolean {
      if (batch.length >= limits.users() || withRecord > limits.octets) return false
      const first = batch[0]
      return first === undefined || limits.sideOf(first.ordinal) === limits.sideOf(ordinal)
    }
  }
  if (batch.length > 0) yield batch
}

/** What was validated is sent as it was read: the core normalises it. */
export const usersOf = (batch: Batch): ImportUser[] =>
  batch.map(({ value }) => value as unknown as ImportUser)
