import type { SourceRecord } from '../source/source.js'

/** A record of the source, or of corrections, with its identity. */
export interface SurveyedRecord extends SourceRecord {
  /** Position of the identity in the source, from 0. */
  readonly ordinal: number
  /** In the form that the core stores. */
  readonly externalUserId: string
}

/** Finds the records of a source that has been read once. */
export interface Survey {
  readonly identities: number
  ordinalOf(externalUserId: string): number | undefined
  /** Line of the record in the source, or in the corrections that replaced it, from 1. */
  lineOf(ordinal: number): number
  /**
   * The records of the source (`from` 0), or of the n-th corrections (`from` n), in their order. Rejects
   * with `bad_source` or `bad_corrections` if they have changed.
   */
  records(from: number): AsyncIterable<SurveyedRecord>
  /** In the order of the source. */
  externalIdsOf(
    ordinals: readonly number[],
  ): AsyncIterable<Pick<SurveyedRecord, 'ordinal' | 'externalUserId'>>
}
