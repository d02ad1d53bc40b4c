import { externalUserIdOf } from '../record-validation/external-user-id.js'
import { type OpenCorrections, openCorrections } from '../source/corrections.js'
import type { Source } from '../source/source.js'
import type { Ledger } from './journaled-state.js'
import { MigrationError } from './migration-error.js'
import {
  type SurveyedRecord,
  type SurveyedSource,
  type Surveying,
  surveySource,
} from './read-source.js'

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

/** Finds the records of the source and of its corrections. */
export interface Surveyor {
  /** The index for one step. Aborting `signal` ends its reads. */
  under(signal: AbortSignal): Survey
  /** Adds corrections that are in the journal already. */
  add(corrections: OpenCorrections): Promise<void>
}

/**
 * Builds the index on the first call. Concurrent calls wait for it, because building it twice would
 * begin the journal twice.
 */
export function surveyOnce(
  take: (signal: AbortSignal) => Promise<Surveyor>,
): (signal: AbortSignal) => Promise<Surveyor> {
  let surveyor: Surveyor | undefined
  let last: Promise<unknown> = Promise.resolve()
  return (signal) => {
    const survey = last.then(async () => {
      surveyor ??= await take(signal)
      return surveyor
    })
    last = survey.catch(ignore)
    return survey
  }
}

function ignore(): void {}

/** @throws MigrationError `bad_source`, `bad_corrections`, `bad_journal`. */
export async function takeSurvey(
  surveying: Surveying,
  given: readonly Source[],
): Promise<Surveyor> {
  const { ledger, settings } = surveying
  const source = await surveySource(surveying)
  const corrections: OpenCorrections[] = []
  const surveyor: Surveyor = {
    under: (signal) => surveyOf({ source, corrections }, signal),
    async add(open) {
      corrections.push(open)
      await readCorrected({ ledger, open, from: corrections.length, source })
    },
  }
  assertAllGiven(ledger.state.corrections.length, given.length)
  for (const each of given) await surveyor.add(openCorrections(each, settings.batchBytes))
  return surveyor
}

function assertAllGiven(known: number, given: number): void {
  if (known === given) return
  const message = `the journal knows ${known} sources of corrections, and ${given} are given`
  throw new MigrationError('bad_corrections', message)
}

interface Surveyed {
  readonly source: SurveyedSource
  readonly corrections: readonly OpenCorrections[]
}

function surveyOf({ source, corrections }: Surveyed, signal: AbortSignal): Survey {
  return {
    identities: source.lines.length,
    ordinalOf: (externalUserId) => source.index.find(externalUserId),
    lineOf: (ordinal) => source.lines.at(ordinal),
    records(from) {
      const open = corrections[from - 1]
      return open === undefined ? source.records(signal) : correctedRecords(open, source, signal)
    },
    async *externalIdsOf(ordinals) {
      const asked = new Set(ordinals)
      for await (const record of source.records(signal)) {
        if (asked.delete(record.ordinal)) yield record
        if (asked.size === 0) return
      }
    },
  }
}

/** The replacement records of the corrections, in their order. */
async function* correctedRecords(
  open: OpenCorrections,
  { index }: SurveyedSource,
  signal: AbortSignal,
): AsyncGenerator<SurveyedRecord> {
  for await (const correction of open.pass({ signal })) {
    if (correction.type !== 'replace') continue
    const externalUserId = externalUserIdOf(correction.record.value) ?? ''
    const ordinal = index.find(externalUserId)
    if (ordinal !== undefined) yield { ...correction.record, ordinal, externalUserId }
  }
}

interface Corrected {
  readonly ledger: Ledger
  readonly open: OpenCorrections
  /** Position among all corrections, from 1. */
  readonly from: number
  readonly source: SurveyedSource
}

/**
 * Sets the line of each corrected record, and checks that the corrections have not changed.
 *
 * @throws MigrationError `bad_corrections`
 */
async function readCorrected({ ledger, open, from, source }: Corrected): Promise<void> {
  const { recordsFrom, corrections } = ledger.state
  const pass = open.pass()
  for await (const correction of pass) {
    if (correction.type !== 'replace') continue
    const ordinal = source.index.find(externalUserIdOf(correction.record.value) ?? '')
    if (ordinal !== undefined && recordsFrom[ordinal] === from) {
      source.lines.set(ordinal, correction.record.line)
    }
  }
  if (pass.digest() === corrections[from - 1]?.digest) return
  const message = `${JSON.stringify(open.name)} is not what the journal knows of it`
  throw new MigrationError('bad_corrections', message)
}
