import { externalUserIdOf } from '../record-validation/stored-form.js'
import { type OpenCorrections, openCorrections } from '../source/corrections.js'
import type { Source } from '../source/source.js'
import type { JournaledState } from './journaled-state.js'
import { MigrationError } from './migration-error.js'
import {
  type IndexedRecord,
  type IndexedSource,
  type IndexingContext,
  indexSource,
} from './read-source.js'

/** Finds the records of a source that has been read once. */
export interface SourceIndex {
  readonly identities: number
  recordIndexOf(externalUserId: string): number | undefined
  /** Line of the record in the source, or in the corrections that replaced it, from 1. */
  lineOf(recordIndex: number): number
  /**
   * The records of the source (`from` 0), or of the n-th corrections (`from` n), in their order. Rejects
   * with `bad_source` or `bad_corrections` if they have changed.
   */
  records(from: number): AsyncIterable<IndexedRecord>
  /** In the order of the source. */
  externalIdsOf(
    recordIndexes: readonly number[],
  ): AsyncIterable<Pick<IndexedRecord, 'recordIndex' | 'externalUserId'>>
}

/** Finds the records of the source and of its corrections. */
export interface SourceIndexBuilder {
  /** The index for one step. Aborting `signal` ends its reads. */
  withSignal(signal: AbortSignal): SourceIndex
  /** Adds corrections that are in the journal already. */
  add(corrections: OpenCorrections): Promise<void>
}

/**
 * Builds the index on the first call. Concurrent calls wait for it, because building it twice would
 * begin the journal twice.
 */
export function createOnce(
  take: (signal: AbortSignal) => Promise<SourceIndexBuilder>,
): (signal: AbortSignal) => Promise<SourceIndexBuilder> {
  let builder: SourceIndexBuilder | undefined
  let last: Promise<unknown> = Promise.resolve()
  return (signal) => {
    const sourceIndex = last.then(async () => {
      builder ??= await take(signal)
      return builder
    })
    last = sourceIndex.catch(() => {})
    return sourceIndex
  }
}

/** @throws MigrationError `bad_source`, `bad_corrections`, `bad_journal`. */
export async function createSourceIndexBuilder(
  context: IndexingContext,
  given: readonly Source[],
): Promise<SourceIndexBuilder> {
  const { journaled, settings } = context
  const source = await indexSource(context)
  const corrections: OpenCorrections[] = []
  const builder: SourceIndexBuilder = {
    withSignal: (signal) => sourceIndexOf({ source, corrections }, signal),
    async add(open) {
      corrections.push(open)
      await readCorrected({ journaled, open, from: corrections.length, source })
    },
  }
  assertAllGiven(journaled.state.corrections.length, given.length)
  for (const each of given) await builder.add(openCorrections(each, settings.batchBytes))
  return builder
}

function assertAllGiven(known: number, given: number): void {
  if (known === given) return
  const message = `the journal knows ${known} sources of corrections, and ${given} are given`
  throw new MigrationError('bad_corrections', message)
}

interface IndexedSources {
  readonly source: IndexedSource
  readonly corrections: readonly OpenCorrections[]
}

function sourceIndexOf({ source, corrections }: IndexedSources, signal: AbortSignal): SourceIndex {
  return {
    identities: source.lines.length,
    recordIndexOf: (externalUserId) => source.index.find(externalUserId),
    lineOf: (recordIndex) => source.lines.at(recordIndex),
    records(from) {
      const open = corrections[from - 1]
      return open === undefined ? source.records(signal) : correctedRecords(open, source, signal)
    },
    async *externalIdsOf(recordIndexes) {
      const asked = new Set(recordIndexes)
      for await (const record of source.records(signal)) {
        if (asked.delete(record.recordIndex)) yield record
        if (asked.size === 0) return
      }
    },
  }
}

/** The replacement records of the corrections, in their order. */
async function* correctedRecords(
  open: OpenCorrections,
  { index }: IndexedSource,
  signal: AbortSignal,
): AsyncGenerator<IndexedRecord> {
  for await (const correction of open.pass({ signal })) {
    if (correction.type !== 'replace') continue
    const externalUserId = externalUserIdOf(correction.record.value) ?? ''
    const recordIndex = index.find(externalUserId)
    if (recordIndex !== undefined) yield { ...correction.record, recordIndex, externalUserId }
  }
}

interface Corrected {
  readonly journaled: JournaledState
  readonly open: OpenCorrections
  /** Position among all corrections, from 1. */
  readonly from: number
  readonly source: IndexedSource
}

/**
 * Sets the line of each corrected record, and checks that the corrections have not changed.
 *
 * @throws MigrationError `bad_corrections`
 */
async function readCorrected({ journaled, open, from, source }: Corrected): Promise<void> {
  const { recordSource, corrections } = journaled.state
  const pass = open.pass()
  for await (const correction of pass) {
    if (correction.type !== 'replace') continue
    const recordIndex = source.index.find(externalUserIdOf(correction.record.value) ?? '')
    if (recordIndex !== undefined && recordSource[recordIndex] === from) {
      source.lines.set(recordIndex, correction.record.line)
    }
  }
  if (pass.digest() === corrections[from - 1]?.digest) return
  const message = `${JSON.stringify(open.name)} is not what the journal knows of it`
  throw new MigrationError('bad_corrections', message)
}
