import type { StagedRow } from '../../core/reply.js'
import { externalUserIdOf } from '../../record-validation/external-user-id.js'
import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../read-source.js'

/**
 * Yields the record in force of each identity that is wanted: that of the source, or that of the last
 * corrections that replaced it. First those of the source, then those of the corrections, in their order.
 */
export async function* recordsInForce(
  { survey, ledger: { state } }: Pick<Work, 'survey' | 'ledger'>,
  isWanted: (ordinal: number) => boolean,
): AsyncGenerator<SurveyedRecord> {
  for (let from = 0; from <= state.corrections.length; from++) {
    const isDue = (ordinal: number): boolean =>
      state.recordsFrom[ordinal] === from && isWanted(ordinal)
    if (!state.identities.some((_, ordinal) => isDue(ordinal))) continue
    for await (const record of survey.records(from)) if (isDue(record.ordinal)) yield record
  }
}

/** Returns the position of a record, for example `Line 3 of the source`. */
export function placeOf({ survey, ledger: { state } }: Work, ordinal: number): string {
  const corrections = state.corrections[(state.recordsFrom[ordinal] ?? 0) - 1]
  return `Line ${survey.lineOf(ordinal)} of ${corrections?.name ?? 'the source'}`
}

/**
 * Returns the identity of a row of this run that is not journaled yet. Returns `undefined` for rows that
 * existed before the run, and for rows of identities that it never sent.
 */
export function ownRowOf({ survey, ledger }: Work, row: StagedRow): number | undefined {
  const { state } = ledger
  if (state.foreignRows.has(row.id) || state.rows.has(row.id)) return undefined
  const externalUserId = externalUserIdOf(row)
  if (externalUserId === undefined) return undefined
  const ordinal = survey.ordinalOf(externalUserId)
  return ordinal !== undefined && state.sentOnce[ordinal] === 1 ? ordinal : undefined
}

export const chunks = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  )
