import { externalUserIdOf } from '../record-validation/external-user-id.js'
import type { OpenCorrections } from '../source/corrections.js'
import type { SurveyedSource } from './index-source.js'
import type { Ledger } from './journaled-state.js'
import { MigrationError } from './migration-error.js'
import type { SurveyedRecord } from './source-index.js'

/** The users of corrections, in their order. */
export async function* correctedRecords(
  open: OpenCorrections,
  { index }: SurveyedSource,
  signal: AbortSignal,
): AsyncGenerator<SurveyedRecord> {
  for await (const correction of open.pass({ signal })) {
    if (correction.type !== 'replace') continue
    const externalUserId = externalUserIdOf(correction.record.value) ?? ''
    const ordinal = index.ordinalOf(externalUserId)
    if (ordinal !== undefined) yield { ...correction.record, ordinal, externalUserId }
  }
}

interface Corrected {
  readonly ledger: Ledger
  readonly open: OpenCorrections
  /** Which of the corrections, from 1. */
  readonly from: number
  readonly source: SurveyedSource
}

/**
 * Takes the lines of corrections that the journal knows, if they are what they were.
 *
 * @throws MigrationError `bad_corrections`
 */
export async function readCorrected({ ledger, open, from, source }: Corrected): Promise<void> {
  const { recordsFrom, corrections } = ledger.state
  const pass = open.pass()
  for await (const correction of pass) {
    if (correction.type !== 'replace') continue
    const ordinal = source.index.ordinalOf(externalUserIdOf(correction.record.value) ?? '')
    if (ordinal !== undefined && recordsFrom[ordinal] === from) {
      source.lines.set(ordinal, correction.record.line)
    }
  }
  if (pass.digest() === corrections[from - 1]?.digest) return
  const message = `${JSON.stringify(open.name)} is not what the journal knows of it`
  throw new MigrationError('bad_corrections', message)
}
