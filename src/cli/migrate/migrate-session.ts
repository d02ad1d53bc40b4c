import type { CoreClient } from '../../migration/core/core-client.js'
import { CoreError } from '../../migration/core/core-error.js'
import type { Journal } from '../../migration/journal/journal.js'
import type {
  Migration,
  MigrationOptions,
  MigrationProgress,
} from '../../migration/run/migration.js'
import { MigrationError } from '../../migration/run/migration-error.js'
import type { MigrationReader, ReadMigrationOptions } from '../../migration/run/open-migration.js'
import type { CommandContext } from '../frame/command.js'
import {
  type CommandFailure,
  type FailureCode,
  unreachableError,
  usageError,
} from '../frame/command-failure.js'
import { withOptionNames } from '../frame/option-names.js'
import { readFileOf } from '../input/private-file.js'
import { readStandardInput } from '../input/standard-input.js'
import { MIGRATE_OPTION_NAMES, readClientTimes, type Settings } from './migrate-options.js'
import { type OriginFile, type Origins, readOrigins } from './source-origins.js'

/** The functions of the package that the command calls. */
export interface MigrateParts {
  coreClient(options: {
    readonly baseUrl: string
    readonly apiKey: string
    readonly allowInsecureHttp?: boolean
    readonly timeoutMs?: number
    readonly stageTimeoutMs?: number
  }): CoreClient
  fileJournal(directory: string): Promise<Journal>
  journalInUse(directory: string): Promise<Journal>
  openMigration(options: MigrationOptions): Promise<Migration>
  readMigration(options: ReadMigrationOptions): Promise<MigrationReader>
}

/** The options of the core client, with address and API key. */
export type Core = Parameters<MigrateParts['coreClient']>[0]

/** @throws CommandFailure (2) */
export async function readCore(context: CommandContext): Promise<Core> {
  const { arguments: args } = context
  return {
    baseUrl: args.required('core'),
    apiKey: await readApiKey(context),
    allowInsecureHttp: args.flag('allow-insecure-http'),
    ...readClientTimes(args),
  }
}

export interface JournalOptions {
  readonly settings: Settings
  /** Whether the step only reads, and so may run while another step has the journal. */
  readonly mayShare?: boolean
}

export interface SessionOptions extends JournalOptions {
  readonly core: Core
  readonly onProgress: (event: MigrationProgress) => void
}

/** An open migration, and its files. */
export interface Session<Opened extends MigrationReader = Migration> {
  readonly migration: Opened
  /** Whether another step has the journal and is still running, so that nothing may be written. */
  readonly isShared: boolean
  readonly files: readonly OriginFile[]
}

/**
 * Runs `work` on the migration of the settings, then closes it.
 *
 * @throws CommandFailure (2 or 3)
 */
export async function withMigration<Result>(
  parts: MigrateParts,
  { core: coreOptions, onProgress, ...options }: SessionOptions,
  work: (session: Session) => Promise<Result>,
): Promise<Result> {
  const core = clientOf(parts, coreOptions)
  const { sourceFile: _source, directory: _directory, ...settings } = options.settings
  const open = (records: JournalRecords): Promise<Migration> =>
    parts.openMigration({ ...settings, ...records, core, onProgress })
  return withJournal(parts, options, { open, work })
}

/**
 * Runs `work` on the reports of the migration of the settings, without a core.
 *
 * @throws CommandFailure (2 or 3)
 */
export const withReports = <Result>(
  parts: MigrateParts,
  options: JournalOptions,
  work: (session: Session<MigrationReader>) => Promise<Result>,
): Promise<Result> =>
  withJournal(parts, options, {
    open: (records) =>
      parts.readMigration({ batchBytes: DEFAULT_BATCH_BYTES, ...options.settings, ...records }),
    work,
  })

const DEFAULT_BATCH_BYTES = 1_000_000

type JournalRecords = Pick<ReadMigrationOptions, 'journal' | 'source' | 'corrections'>

async function withJournal<Opened extends MigrationReader, Result>(
  parts: MigrateParts,
  options: JournalOptions,
  {
    open,
    work,
  }: {
    readonly open: (records: JournalRecords) => Promise<Opened>
    readonly work: (session: Session<Opened>) => Promise<Result>
  },
): Promise<Result> {
  try {
    const { journal, isShared } = await openJournal(parts, options)
    try {
      const origins = await readOrigins(journal)
      if (isShared && origins.source === undefined) throw notBegun()
      const source = sourceOf(options.settings.sourceFile, origins)
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

const notBegun = (): CommandFailure =>
  usageError('journal_in_use', 'another step has the journal open, and no run has started yet')

interface OpenJournal extends Pick<Session, 'isShared'> {
  readonly journal: Journal
}

async function openJournal(
  parts: MigrateParts,
  { settings: { directory }, mayShare = false }: JournalOptions,
): Promise<OpenJournal> {
  try {
    return { journal: await parts.fileJournal(directory), isShared: false }
  } catch (error) {
    const isInUse = error instanceof MigrationError && error.code === 'journal_in_use'
    if (!isInUse || !mayShare) throw error
    return { journal: await parts.journalInUse(directory), isShared: true }
  }
}

/** A file may have been moved; the journal recognises it by its digest. */
function sourceOf(given: string | undefined, { source }: Origins): string {
  const file = given ?? source?.path
  if (file !== undefined) return file
  throw usageError('usage', '--source is missing: the journal has no run yet')
}

function clientOf({ coreClient }: MigrateParts, core: Core): CoreClient {
  try {
    return coreClient(core)
  } catch (error) {
    if (error instanceof TypeError) throw usageError('usage', inCommandWords(error.message))
    throw error
  }
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

/** A value that fits in a header; the core's own keys have letters, digits, `=` and `-`. */
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
    throw usageError('usage', 'use either --api-key-file or --api-key-stdin')
  }
  if (file === undefined) {
    return checked(await readStandardInput(context, 'the API key'), 'input', 'standard input')
  }
  const text = await readFileOf('--api-key-file', file, 'secret')
  return checked(text.replace(/\r?\n$/, ''), 'file', 'the --api-key-file file')
}

function checked(key: string, code: FailureCode, place: string): string {
  if (HEADER_VALUE.test(key)) return key
  throw usageError(code, `${place} must contain only an API key: one word in ASCII`)
}
