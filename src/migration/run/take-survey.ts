import type { Survey } from './survey.js'
import { type SurveyedSource, type Surveying, surveySource } from './survey-source.js'

/** Finds records while a step is under way, and ends with it. */
export type Surveyor = (signal?: AbortSignal) => Survey

/** @throws MigrationError `bad_source`, `bad_corrections`, `bad_journal`. */
export async function takeSurvey(surveying: Surveying): Promise<Surveyor> {
  const source = await surveySource(surveying)
  return (signal) => surveyOf(source, signal)
}

function surveyOf(source: SurveyedSource, signal: AbortSignal | undefined): Survey {
  return {
    identities: source.lines.length,
    ordinalOf: (externalUserId) => source.index.ordinalOf(externalUserId),
    lineOf: (ordinal) => source.lines.at(ordinal),
    records(_from) {
      return source.records(signal)
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
