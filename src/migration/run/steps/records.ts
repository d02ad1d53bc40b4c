import type { StagedRow } from '../../core/reply.js'
import { externalUserIdOf } from '../../record-validation/stored-form.js'
import type { MigrationContext } from '../migration-context.js'
import type { IndexedRecord } from '../source-index.js'

/**
 * Yields the current record of each identity that is wanted: that of the source, or that of the last
 * corrections that replaced it. First those of the source, then those of the corrections, in their order.
 */
export async function* currentRecords(
  { sourceIndex, journaled: { state }, signal }: MigrationContext,
  isWanted: (recordIndex: number) => boolean,
): AsyncGenerator<IndexedRecord> {
  for (let from = 0; from <= state.corrections.length; from++) {
    const isDue = (recordIndex: number): boolean =>
      state.recordSource[recordIndex] === from && isWanted(recordIndex)
    if (!state.identities.some((_, recordIndex) => isDue(recordIndex))) continue
    for await (const record of sourceIndex.records(from, signal))
      if (isDue(record.recordIndex)) yield record
  }
}

/** Returns the position of a record, for example `Line 3 of the source`. */
export function recordPosition(
  { sourceIndex, journaled: { state } }: MigrationContext,
  recordIndex: number,
): string {
  const corrections = state.corrections[(state.recordSource[recordIndex] ?? 0) - 1]
  return `Line ${sourceIndex.lineOf(recordIndex)} of ${corrections?.name ?? 'the source'}`
}

/**
 * Returns the record index of a row of this run that is not journaled yet. Returns `undefined` for rows that
 * existed before the run, and for rows of identities that it never sent.
 */
export function recordIndexOfRow(
  { sourceIndex, journaled }: MigrationContext,
  row: StagedRow,
): number | undefined {
  const { state } = journaled
  if (state.foreignRows.has(row.id) || state.rows.has(row.id)) return undefined
  const externalUserId = externalUserIdOf(row)
  if (externalUserId === undefined) return undefined
  const recordIndex = sourceIndex.recordIndexOf(externalUserId)
  return recordIndex !== undefined && state.wasSent[recordIndex] === 1 ? recordIndex : undefined
}

export const chunks = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  )
