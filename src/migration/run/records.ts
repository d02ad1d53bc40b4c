import { resolve } from 'node:path'
import { pause } from '../../base/deadline.js'
import type { MigrationProgress } from '../../base/decision/migration-event.js'
import type { CoreClient, RowStatus, StagedRow } from '../core/core-client.js'
import type { ImportUser } from '../core/import-user.js'
import { externalUserIdOf } from '../record-validation/normalise.js'
import { type Correction, type OpenCorrections, openCorrections } from '../source/corrections.js'
import { createDigestTable } from '../source/digest-table.js'
import type { Source, SourceRecord } from '../source/source.js'
import { openSource } from '../source/source.js'
import type { MigrationSettings } from './migration.js'
import { MigrationError } from './migration-error.js'
import { type EntryOf, type Finding, lookedUpEntry, type Origin } from './state/journal-entry.js'
import type { JournaledState } from './state/replay-journal.js'
import { mayRestart, sourceOf } from './state/run-state.js'

/** A record of the source, or of corrections, with its identity. */
export interface IndexedRecord extends SourceRecord {
  /** Position of the identity in the source, from 0. */
  readonly recordIndex: number
  /** In the form that the core stores. */
  readonly externalUserId: string
}

/** Returns a record as a user. Validation must have accepted it. */
export const userOf = ({ value }: SourceRecord): ImportUser => value as unknown as ImportUser

/** Finds the records of the source and of its corrections. It takes a few bytes per record. */
export interface SourceIndex {
  recordIndexOf(externalUserId: string): number | undefined
  /** Line of the record in the source, or in the corrections that replaced it, from 1. */
  lineOf(recordIndex: number): number
  /**
   * The records of the source (`sourceNumber` 0), or of the n-th corrections (`sourceNumber` n), in their order.
   * Rejects with `bad_source` or `bad_corrections` if they have changed.
   */
  records(sourceNumber: number, signal: AbortSignal): AsyncIterable<IndexedRecord>
  /**
   * Adds corrections that are in the journal already.
   *
   * @throws MigrationError `bad_corrections` if their digest is not that of the journal.
   */
  add(corrections: OpenCorrections): Promise<void>
}

/** `core` is missing for `readMigration`, which calls no core. */
export type IndexedSettings = Pick<MigrationSettings, 'source' | 'corrections' | 'batchBytes'> &
  Partial<Pick<MigrationSettings, 'core'>>

interface IndexingContext {
  readonly settings: IndexedSettings
  readonly journaled: JournaledState
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/**
 * Reads the whole source, and the corrections made so far. Begins the journal, or checks that the journal
 * belongs to this source.
 *
 * @throws MigrationError `bad_source`, `bad_corrections`, `bad_journal`.
 */
export async function createSourceIndex(
  context: IndexingContext,
  signal: AbortSignal,
): Promise<SourceIndex> {
  const { settings, journaled } = context
  const source = openSource(settings.source, { maxRecordBytes: settings.batchBytes })
  const table = createDigestTable()
  const lines: number[] = []
  for await (const record of withExternalIds(source.records(signal))) {
    const earlier = table.add(record.externalUserId, record.recordIndex)
    if (earlier !== undefined) {
      const message = `its externalUserId is that of line ${lines[earlier]}`
      throw new MigrationError('bad_source', message, record.line)
    }
    lines.push(record.line)
  }
  await begin(context, { digest: source.digest(), identities: lines.length })
  const corrections: OpenCorrections[] = []
  const index: SourceIndex = {
    recordIndexOf: (externalUserId) => table.find(externalUserId),
    lineOf: (recordIndex) => lines[recordIndex] ?? 0,
    records(sourceNumber, readSignal) {
      const open = corrections[sourceNumber - 1]
      if (open !== undefined) return replacementsIn(open.corrections(readSignal), index)
      return withExternalIds(source.records(readSignal))
    },
    async add(open) {
      const sourceNumber = corrections.push(open)
      for await (const { recordIndex, line } of replacementsIn(open.corrections(), index)) {
        if (sourceOf(journaled.state, recordIndex) === sourceNumber) lines[recordIndex] = line
      }
      if (open.digest() === journaled.state.corrections[sourceNumber - 1]?.digest) return
      const message = `${JSON.stringify(open.name)} has changed since the journal recorded it`
      throw new MigrationError('bad_corrections', message)
    },
  }
  const [known, given] = [journaled.state.corrections.length, settings.corrections.length]
  if (known !== given) {
    const message = `the journal knows ${known} sources of corrections, and ${given} are given`
    throw new MigrationError('bad_corrections', message)
  }
  for (const each of settings.corrections) {
    await index.add(openCorrections(each, settings.batchBytes))
  }
  return index
}

/** @throws MigrationError `bad_source` at the first record without a usable external id. */
async function* withExternalIds(
  records: AsyncIterable<SourceRecord>,
): AsyncGenerator<IndexedRecord> {
  let recordIndex = 0
  for await (const record of records) {
    const externalUserId = externalUserIdOf(record.value)
    if (externalUserId === undefined) {
      const message = 'the record needs an externalUserId, a text of 1 to 128 characters'
      throw new MigrationError('bad_source', message, record.line)
    }
    yield { ...record, recordIndex, externalUserId }
    recordIndex += 1
  }
}

/** Yields the replacement records of corrections, in their order. */
export async function* replacementsIn(
  corrections: AsyncIterable<Correction>,
  { recordIndexOf }: Pick<SourceIndex, 'recordIndexOf'>,
): AsyncGenerator<IndexedRecord> {
  for await (const correction of corrections) {
    if (correction.type !== 'replace') continue
    const externalUserId = externalUserIdOf(correction.record.value) ?? ''
    const recordIndex = recordIndexOf(externalUserId)
    if (recordIndex !== undefined) yield { ...correction.record, recordIndex, externalUserId }
  }
}

/** Begins the journal, or begins it again if the source or the core has changed and nothing was sent or corrected. */
async function begin(
  { settings, journaled, now }: IndexingContext,
  { digest, identities }: { readonly digest: string; readonly identities: number },
): Promise<void> {
  const source = originOf(settings.source, digest)
  const { begun } = journaled.state
  const core = settings.core === undefined ? begun?.core : coreAddressOf(settings.core)
  if (begun !== undefined && !mayRestart(journaled.state)) return assertSameOrigin(begun, source)
  if (begun?.source.digest === digest && begun.core === core) return
  const about = { at: now(), identities, source }
  await journaled.write({ type: 'begun', ...about, ...(core !== undefined && { core }) })
}

export function originOf(source: Source, digest: string): Origin {
  return 'file' in source
    ? { name: resolve(source.file), file: true, digest }
    : { name: source.name, file: false, digest }
}

/** Compares digests only, because a file may have moved. @throws MigrationError `bad_source`, `bad_journal`. */
function assertSameOrigin(begun: EntryOf<'begun'>, source: Origin): void {
  if (begun.source.digest === source.digest) return
  if (begun.source.name === source.name) {
    throw new MigrationError(
      'bad_source',
      'the source has changed since the run began: restore it, and put changes into corrections',
    )
  }
  throw new MigrationError('bad_journal', 'the journal is of another source')
}

/** The core's address, if the client exposes it. */
const coreAddressOf = ({ baseUrl }: CoreClient): string | undefined => baseUrl?.replace(/\/+$/, '')

/** @throws MigrationError `bad_journal` if the journal was begun with another core. */
export function assertSameCore(begun: EntryOf<'begun'> | undefined, core: CoreClient): void {
  const address = coreAddressOf(core)
  if (begun?.core === undefined || address === undefined || begun.core === address) return
  throw new MigrationError(
    'bad_journal',
    `the journal is of a core at another address (${begun.core})`,
  )
}

/** The shared context of a run's steps. */
export interface MigrationContext {
  readonly core: CoreClient
  readonly settings: MigrationSettings
  readonly journaled: JournaledState
  readonly sourceIndex: SourceIndex
  readonly timing: Timing
  readonly signal: AbortSignal
  /** Consecutive calls without a reply and full effect. A call with a reply, or a batch found staged, resets it. */
  consecutiveLostReplies: number
  /** The row counts at the last look-up of the waiting rows, and the time `at` of it, from `timing.elapsedMs`. */
  lastExamination: { readonly failed: number; readonly processing: number; readonly at: number }
  emit(
    type: MigrationProgress['type'],
    about?: Pick<MigrationProgress, 'rows' | 'users' | 'batch'>,
  ): void
}

/** The clocks and the timer of a run. */
export interface Timing {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Milliseconds on a monotonic clock. */
  readonly elapsedMs: () => number
  /** Rejects with the signal's reason once it aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

export const SYSTEM_TIMING: Timing = {
  now: Date.now,
  elapsedMs: () => performance.now(),
  sleep: pause,
}

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
      sourceOf(state, recordIndex) === sourceNumber && isWanted(recordIndex)
    if (!state.codes.some((_, recordIndex) => isDue(recordIndex))) continue
    for await (const record of sourceIndex.records(sourceNumber, signal))
      if (isDue(record.recordIndex)) yield record
  }
}

/** Returns the position of a record, for example `Line 3 of the source`. */
export function recordPosition(
  { sourceIndex, journaled: { state } }: MigrationContext,
  recordIndex: number,
): string {
  const corrections = state.corrections[sourceOf(state, recordIndex) - 1]
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
    if (recordIndex === undefined || state.wasSent[recordIndex] !== 1) continue
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

/**
 * Looks for each identity at the core, first for its row and then for its account, so that a user who is imported
 * between the two reads is not missed.
 */
export async function findAtCore(
  ctx: MigrationContext,
  identities: Iterable<Identity> | AsyncIterable<Identity>,
): Promise<{ readonly rows: readonly number[]; readonly accounts: readonly number[] }> {
  const { core, settings, signal } = ctx
  const withRow = new Set<number>()
  for await (const { recordIndex } of unrecordedRows(ctx)) withRow.add(recordIndex)
  const rows: number[] = []
  const accounts: number[] = []
  await forEachConcurrently(identities, settings.lookUps, async (identity) => {
    const { recordIndex, externalUserId } = identity
    if (withRow.has(recordIndex)) rows.push(recordIndex)
    else if ((await core.coreIdOf(externalUserId, { signal })) !== undefined) {
      accounts.push(recordIndex)
    }
  })
  return { rows, accounts }
}

/** Looks up each wanted identity and journals the findings. Without a finding, an identity keeps its state. */
export const lookUpEach = (
  ctx: MigrationContext,
  event: 'reconciling' | 'settled',
  isWanted: (recordIndex: number) => boolean,
  lookUp: (record: IndexedRecord) => Promise<Finding | undefined>,
): Promise<void> =>
  inGroups(currentRecords(ctx, isWanted), ctx.settings.lookUps, lookUp, async (findings) => {
    await ctx.journaled.write(lookedUpEntry(...findings))
    ctx.emit(event, { users: findings.length })
  })

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
