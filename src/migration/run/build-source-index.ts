import { type OpenCorrections, openCorrections } from '../source/corrections.js'
import type { Source } from '../source/source.js'
import { correctedRecords, readCorrected } from './corrected-records.js'
import { type SurveyedSource, type Surveying, surveySource } from './index-source.js'
import { MigrationError } from './migration-error.js'
import type { Survey } from './source-index.js'

/** Finds records while a step is under way, and ends with it. */
export interface Surveyor {
  under(signal: AbortSignal): Survey
  /** Corrections that the journal knows by now. */
  add(corrections: OpenCorrections): Promise<void>
}

/**
 * Takes the survey when it is first asked for. Whoever asks meanwhile waits for it: two at once would
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
    ordinalOf: (externalUserId) => source.index.ordinalOf(externalUserId),
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
