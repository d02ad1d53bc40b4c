import type { CoreClient } from '../../migration/core/core-client.js'
import { CoreError } from '../../migration/core/core-error.js'
import { CLIENT_NUMBERS, type CoreClientOptions } from '../../migration/core/open-core-client.js'
import { readOnlyJournal } from '../../migration/journal/file-journal.js'
import type { Journal } from '../../migration/journal/journal.js'
import { MigrationError } from '../../migration/run/migration-error.js'
import type { MigrationReader, ReadMigrationOptions } from '../../migration/run/open-migration.js'
import { readEntries } from '../../migration/run/replay-journal.js'
import type { Origin } from '../../migration/run/state/journal-entry.js'
import type { CommandContext } from '../frame/command.js'
import {
  type FailureCode,
  unreachableError,
  usageError,
  withOptionNames,
} from '../frame/command-failure.js'
import { readTextFile } from '../input/private-file.js'
import { readStandardInput } from '../input/standard-input.js'
import { MIGRATE_OPTION_NAMES, type MigrateSettings, readNumbers } from './migrate-options.js'

/** The functions of the package that `migrate` calls, so that tests can replace them. */
export interface MigrateParts {
  readonly coreClient: (options: CoreClientOptions) => CoreClient
  readonly fileJournal: (directory: string) => Promise<Journal>
}

/**
 * Creates the client of the core that the options name.
 *
 * @throws CommandFailure (2)
 */
export async function openCore(
  { coreClient }: MigrateParts,
  context: CommandContext,
): Promise<CoreClient> {
  const { arguments: args } = context
  const options = {
    baseUrl: args.required('core'),
    apiKey: await readApiKey(context),
    allowInsecureHttp: args.flag('allow-insecure-http'),
    ...readNumbers(args, CLIENT_NUMBERS),
  }
  try {
    return coreClient(options)
  } catch (error) {
    if (error instanceof TypeError) throw usageError('usage', inCommandWords(error.message))
    throw error
  }
}

interface JournalOptions extends MigrateSettings {
  /** Whether the step only reads, and so may run while another step has the journal. */
  readonly mayShare?: boolean
}

/** The files of an open journal. */
export type Files = Pick<ReadMigrationOptions, 'journal' | 'source' | 'corrections'>

/** An open migration, and its files. */
export interface Session<Opened extends MigrationReader> {
  readonly migration: Opened
  /** Whether another step has the journal and is still running, so that nothing may be written. */
  readonly isShared: boolean
  readonly files: readonly OriginFile[]
}

/**
 * Opens the journal and the migration, runs `work` on it, then closes both.
 *
 * @throws CommandFailure (2 or 3)
 */
export async function withMigration<Opened extends MigrationReader, Result>(
  { fileJournal }: MigrateParts,
  { directory, sourceFile, mayShare = false }: JournalOptions,
  open: (files: Files) => Promise<Opened>,
  work: (session: Session<Opened>) => Promise<Result>,
): Promise<Result> {
  try {
    let isShared = false
    const journal = await fileJournal(directory).catch((error: unknown) => {
      isShared = mayShare && error instanceof MigrationError && error.code === 'journal_in_use'
      if (!isShared) throw error
      return readOnlyJournal(directory)
    })
    try {
      const origins = await readOrigins(journal)
      if (isShared && origins.source === undefined) {
        const message = 'another step has the journal open, and no run has started yet'
        throw usageError('journal_in_use', message)
      }
      const source = chooseSourceFile(sourceFile, origins)
      const corrections = origins.corrections.map(({ path }) => ({ file: path }))
      const migration = await open({ journal, source: { file: source }, corrections })
      try {
        const { digest = '' } = origins.source ?? {}
        const files = [{ path: source, digest }, ...origins.corrections]
        return await work({ migration, isShared, files })
      } finally {
        await migration.close()
      }
    } finally {
      await journal.close()
    }
  } catch (error) {
    throw asFailure(error)
  }
}

/** A source or corrections file of a journal. */
export interface OriginFile {
  /** Absolute. */
  readonly path: string
  /** The SHA-256 of its bytes, in hexadecimal. */
  readonly digest: string
}

/** The files of a journal. */
interface Origins {
  /** `undefined` before the run begins. */
  readonly source: OriginFile | undefined
  /** The corrections made so far, in their order. */
  readonly corrections: readonly OriginFile[]
}

/**
 * Reads from the journal which files a resume must read again.
 *
 * @throws MigrationError `bad_journal`
 */
async function readOrigins(journal: Journal): Promise<Origins> {
  let source: OriginFile | undefined
  const corrections: OriginFile[] = []
  for await (const entry of readEntries(journal)) {
    if (entry.type === 'begun') source = fileOf(entry.source)
    const file = entry.type === 'corrected' ? fileOf(entry.source) : undefined
    if (file !== undefined) corrections.push(file)
  }
  return { source, corrections }
}

/** Returns `undefined` for a source that is not a file; only a program that calls the package has one. */
const fileOf = ({ name, file, digest }: Origin): OriginFile | undefined =>
  file ? { path: name, digest } : undefined

/** `given` may differ from the path in the journal, because the run compares the digests only. */
function chooseSourceFile(given: string | undefined, { source }: Origins): string {
  const file = given ?? source?.path
  if (file !== undefined) return file
  throw usageError('usage', '--source is missing: the journal has no run yet')
}

function asFailure(error: unknown): unknown {
  if (error instanceof MigrationError) return usageError(error.code, inCommandWords(error.message))
  if (error instanceof CoreError) {
    const message = inCommandWords(error.message)
    return unreachableError('core_fault', `${message}; the journal contains all completed work`)
  }
  return error
}

/** Replaces option names in a message of the package with the options of this command. */
export const inCommandWords = (message: string): string =>
  withOptionNames(message, MIGRATE_OPTION_NAMES)

/** A key that fits in a header; the core allows only letters, digits, `=` and `-`. */
const HEADER_VALUE = /^[\x21-\x7e]+$/

/**
 * Reads the API key of the core, from a file that only its owner can read or from standard input.
 *
 * @throws CommandFailure (2), without any part of the key.
 */
async function readApiKey(
  context: Pick<CommandContext, 'arguments' | 'stdin' | 'note'>,
): Promise<string> {
  const { arguments: args } = context
  const file = args.text('api-key-file')
  const isOnStandardInput = args.flag('api-key-stdin')
  if ((file !== undefined) === isOnStandardInput) {
    throw usageError('usage', 'use either --api-key-file FILE or --api-key-stdin')
  }
  if (file === undefined) {
    return checked(await readStandardInput(context, 'the API key'), 'input', 'standard input')
  }
  const text = await readTextFile('--api-key-file', file, 'secret')
  return checked(text.replace(/\r?\n$/, ''), 'file', 'the --api-key-file file')
}

function checked(key: string, code: FailureCode, place: string): string {
  if (HEADER_VALUE.test(key)) return key
  throw usageError(code, `${place} must contain only an API key: one word in ASCII`)
}
