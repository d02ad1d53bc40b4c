import type { SourceRecord } from '../source/source.js'

/** A record of the source, or of corrections, with the identity that it is of. */
export interface SurveyedRecord extends SourceRecord {
  /** Of the identity: its place in the source, from 0. */
  readonly ordinal: number
  /** As the core keeps it. */
  readonly externalUserId: string
}

/** What has been read of the source, to find its records again. */
export interface Survey {
  readonly identities: number
  ordinalOf(externalUserId: string): number | undefined
  /** Of the source, or of the corrections that replaced the record; from 1. */
  lineOf(ordinal: number): number
  /**
   * The records of the source (0), or the users of corrections (from 1), in their order. Rejects with
   * `bad_source` or `bad_corrections` when they are not what they were.
   */
  records(from: number): AsyncIterable<SurveyedRecord>
  /** In the source's order. */
  externalIdsOf(
    ordinals: readonly number[],
  ): AsyncIterable<Pick<SurveyedRecord, 'ordinal' | 'externalUserId'>>
}
