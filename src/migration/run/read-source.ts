import { resolve } from 'node:path'
import { crc32 } from 'node:zlib'
import type { CoreClient } from '../core/core-client.js'
import { externalUserIdOf } from '../record-validation/stored-form.js'
import { createDigestTable, type DigestTable } from '../source/digest-table.js'
import { type OpenSource, openSource } from '../source/open-source.js'
import type { Source, SourceRecord } from '../source/source.js'
import type { JournaledState } from './journaled-state.js'
import { MigrationError } from './migration-error.js'
import type { MigrationSettings } from './settings.js'
import { begunEntry, type EntryOf, type Origin } from './state/journal-entry.js'
import { mayRestart } from './state/run-state.js'
import type { Timing } from './timing.js'

/** A record of the source, or of corrections, with its identity. */
export interface IndexedRecord extends SourceRecord {
  /** Position of the identity in the source, from 0. */
  readonly recordIndex: number
  /** In the form that the core stores. */
  readonly externalUserId: string
}

export interface IndexingContext {
  /** Without a `core` if nothing calls it. */
  readonly settings: Pick<MigrationSettings, 'source' | 'batchBytes'> &
    Partial<Pick<MigrationSettings, 'core'>>
  readonly journaled: JournaledState
  readonly timing: Timing
  readonly signal: AbortSignal
}

/** The index that one pass over the source leaves in memory: a few bytes per record. */
export interface IndexedSource {
  readonly index: DigestTable
  readonly lines: Uint32List
  records(signal?: AbortSignal): AsyncGenerator<IndexedRecord>
}

/**
 * Reads the whole source. Begins the journal, or checks that the journal belongs to this source.
 *
 * @throws MigrationError `bad_source`, `bad_journal`.
 */
export async function indexSource(context: IndexingContext): Promise<IndexedSource> {
  const { settings, signal } = context
  const source = openSource(settings.source, { maxRecordBytes: settings.batchBytes })
  const index = createDigestTable()
  const lines = createUint32List()
  const checks = createUint32List()
  const pass = source.pass({ signal })
  for await (const record of pass) {
    const earlier = index.add(identityOf(record), lines.length)
    if (earlier !== undefined) {
      const message = `its externalUserId is that of line ${lines.at(earlier)}`
      throw new MigrationError('bad_source', message, record.line)
    }
    lines.push(record.line)
    checks.push(crc32(record.text))
  }
  await begin(context, { digest: pass.digest(), identities: lines.length })
  return { index, lines, records: (underWay) => sameRecords(source, checks, underWay) }
}

/** Yields the records again. Rejects if one has changed since the first pass, because it was never validated. */
async function* sameRecords(
  source: OpenSource,
  checks: Uint32List,
  signal: AbortSignal | undefined,
): AsyncGenerator<IndexedRecord> {
  let recordIndex = 0
  for await (const record of source.pass(signal && { signal })) {
    if (recordIndex >= checks.length || crc32(record.text) !== checks.at(recordIndex)) {
      throw new MigrationError(
        'bad_source',
        'the source has changed since it was first read',
        record.line,
      )
    }
    yield { ...record, recordIndex, externalUserId: identityOf(record) }
    recordIndex += 1
  }
}

function identityOf({ value, line }: SourceRecord): string {
  const externalUserId = externalUserIdOf(value)
  if (externalUserId !== undefined) return externalUserId
  const message = 'the record needs an externalUserId, a text of 1 to 128 characters'
  throw new MigrationError('bad_source', message, line)
}

async function begin(
  { settings, journaled, timing }: IndexingContext,
  { digest, identities }: { readonly digest: string; readonly identities: number },
): Promise<void> {
  const source = originOf(settings.source, digest)
  const { begun } = journaled.state
  const core = settings.core === undefined ? begun?.core : coreAddressOf(settings.core)
  if (begun !== undefined && !mayRestart(journaled.state)) return assertSameOrigin(begun, source)
  if (begun?.source.digest === digest && begun.core === core) return
  const at = timing.now()
  await journaled.write(
    begunEntry({ at, identities, source, ...(core === undefined ? {} : { core }) }),
  )
}

/** A list of numbers from 0 to 4,294,967,295, four bytes each. */
interface Uint32List {
  readonly length: number
  at(index: number): number
  set(index: number, value: number): void
  push(value: number): void
}

const FIRST_CAPACITY = 1024

function createUint32List(): Uint32List {
  let numbers = new Uint32Array(FIRST_CAPACITY)
  let length = 0
  return {
    get length() {
      return length
    },
    at: (index) => numbers[index] ?? 0,
    set(index, value) {
      numbers[index] = value
    },
    push(value) {
      if (length === numbers.length) {
        const larger = new Uint32Array(length + Math.ceil(length / 2))
        larger.set(numbers)
        numbers = larger
      }
      numbers[length] = value
      length += 1
    },
  }
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
    throw new MigrationError('bad_source', 'the source has changed since the run began')
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
