import type { RowStatus, StagedRow } from '../../core/core-client.js'
import { externalUserIdOf } from '../../record-validation/normalise.js'
import type { MigrationContext } from '../migration-context.js'
import type { IndexedRecord } from '../source-index.js'
import type { EntryOf } from '../state/journal-entry.js'
import { identityAt } from '../state/run-state.js'

/**
 * Yields the current record of each wanted identity: the record of the source, or of the last corrections that
 * replaced it. The records of the source come first, then those of each corrections in turn.
 */
export async function* currentRecords(
  { sourceIndex, journaled: { state }, signal }: MigrationContext,
  isWanted: (recordIndex: number) => boolean,
): AsyncGenerator<IndexedRecord> {
  for (let sourceNumber = 0; sourceNumber <= state.corrections.length; sourceNumber++) {
    const isDue = (recordIndex: number): boolean =>
      identityAt(state, recordIndex).source === sourceNumber && isWanted(recordIndex)
    if (!state.identities.some((_, recordIndex) => isDue(recordIndex))) continue
    for await (const record of sourceIndex.records(sourceNumber, signal))
      if (isDue(record.recordIndex)) yield record
  }
}

/** Returns the position of a record, for example `Line 3 of the source`. */
export function recordPosition(
  { sourceIndex, journaled: { state } }: MigrationContext,
  recordIndex: number,
): string {
  const corrections = state.corrections[identityAt(state, recordIndex).source - 1]
  return `Line ${sourceIndex.lineOf(recordIndex)} of ${corrections?.name ?? 'the source'}`
}

export interface RunRow {
  readonly row: StagedRow
  readonly recordIndex: number
  readonly externalUserId: string
}

/**
 * Yields the rows of this run that are not journaled yet, with one status or with any. Skips rows that
 * existed before the run, and rows of identities that it never sent.
 */
export async function* unrecordedRows(
  { core, sourceIndex, journaled: { state }, signal }: MigrationContext,
  status?: RowStatus,
): AsyncGenerator<RunRow> {
  for await (const row of core.rows(status, { signal })) {
    if (state.foreignRows.has(row.id) || state.rows.has(row.id)) continue
    const externalUserId = externalUserIdOf(row)
    if (externalUserId === undefined) continue
    const recordIndex = sourceIndex.recordIndexOf(externalUserId)
    if (recordIndex === undefined || !identityAt(state, recordIndex).wasSent) continue
    yield { row, recordIndex, externalUserId }
  }
}

/** Returns the journal entry of a row, without the decision `as`. */
export const rowEntry = (
  { sourceIndex }: MigrationContext,
  { row, recordIndex, externalUserId }: RunRow,
): Omit<EntryOf<'row'>, 'as'> => ({
  type: 'row',
  row: row.id,
  record: recordIndex,
  line: sourceIndex.lineOf(recordIndex),
  externalUserId,
  status: row.status,
})

type Identity = Pick<IndexedRecord, 'recordIndex' | 'externalUserId'>

/** Returns the identities that have an account. */
export async function findAccounts(
  { core, settings, signal }: MigrationContext,
  identities: Iterable<Identity> | AsyncIterable<Identity>,
): Promise<ReadonlySet<number>> {
  const found = new Set<number>()
  await forEachConcurrently(
    identities,
    settings.lookUps,
    async ({ recordIndex, externalUserId }) => {
      const coreUserId = await core.coreIdOf(externalUserId, { signal })
      if (coreUserId !== undefined) found.add(recordIndex)
    },
  )
  return found
}

/**
 * Calls `work` for each item, at most `limit` at a time, in no guaranteed order. A failure ends the reading of items;
 * once the calls in progress have ended, it rejects with the failure.
 */
export async function forEachConcurrently<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const shared = generatorOf(items)
  const runWorker = async (): Promise<void> => {
    // Leaving the loop closes the generator, so the other workers end too.
    for await (const item of shared) await work(item)
  }
  const ends = await Promise.allSettled(Array.from({ length: limit }, runWorker))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

/** Number of results that are written together. */
const GROUP_SIZE = 200

/**
 * Calls `work` for each item like `forEachConcurrently`, and passes its results to `write` in groups. Leaves out
 * results of `undefined`. If an item fails, the results until then are still written.
 */
export async function inGroups<Item, Result>(
  items: AsyncIterable<Item>,
  limit: number,
  work: (item: Item) => Promise<Result | undefined>,
  write: (results: readonly Result[]) => Promise<void>,
): Promise<void> {
  let results: Result[] = []
  const flush = async (): Promise<void> => {
    const written = results
    results = []
    if (written.length > 0) await write(written)
  }
  try {
    await forEachConcurrently(items, limit, async (item) => {
      const result = await work(item)
      if (result !== undefined) results.push(result)
      if (results.length >= GROUP_SIZE) await flush()
    })
  } finally {
    await flush()
  }
}

/** Returns a generator of the items, because a generator queues concurrent calls of `next`. */
async function* generatorOf<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
): AsyncGenerator<Item, void, undefined> {
  yield* items
}
