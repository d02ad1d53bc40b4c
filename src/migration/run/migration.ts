import { z } from 'zod'
import type { MigrationProgress } from '../../base/decision/migration-event.js'
import {
  flag,
  functionOf,
  hasFunctions,
  integerBetween,
  isObject,
  lazy,
  numberBetween,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import type { CoreClient } from '../core/core-client.js'
import type { Journal } from '../journal/file-journal.js'
import { USER_WARNING_CODES, type UserWarningCode } from '../record-validation/user-finding.js'
import type { Source } from '../source/source.js'
import type { IdentityReport, MigrationReport } from './report.js'
import { isFailureCode } from './state/run-state.js'

/** Options of `openMigration`. */
export interface MigrationOptions {
  /** A client of the core to migrate into, such as a `coreClient`. */
  readonly core: CoreClient
  /** The records to migrate. */
  readonly source: Source
  /** Records the progress, such as a `fileJournal`. */
  readonly journal: Journal
  /** Called with each step. If it throws or rejects, the error is ignored. */
  readonly onProgress?: (event: MigrationProgress) => unknown
  /** Users per call, 1 to 10,000. Default 2000. */
  readonly batchUsers?: number
  /** Maximum bytes of a call and of a record, 65,536 to 67,108,864. Default 1,000,000. */
  readonly batchBytes?: number
  /** Seconds after which a call without a reply is assumed to have ended at the core, 0 to 600. Default 60. */
  readonly settleSeconds?: number
  /** Seconds between two polls of the row counts, 1 to 3600. Default 15. */
  readonly pollSeconds?: number
  /** Minutes without a change after which the run counts as stalled, 1 to 1440. Default 30. */
  readonly stallMinutes?: number
  /** Concurrent look-ups, 1 to 64. Default 8. */
  readonly lookUps?: number
  /** Warnings to accept. Any other warning stops the run before staging. Default none. */
  readonly acceptWarnings?: readonly UserWarningCode[]
  /** Starts even if the core has rows that are not from this run; they are never changed. Default false. */
  readonly allowForeignRows?: boolean
  /** Sources of the corrections applied so far, in their order. Default none. */
  readonly corrections?: readonly Source[]
}

/** Options of each step of a migration. */
export interface StepOptions {
  /** Aborting it ends the step early. The report then has the state `interrupted`, and no progress is lost. */
  readonly signal?: AbortSignal
}

/** A migration of a source into the core. Only one step may run at a time. */
export interface Migration {
  /** Runs the preflight only. Nothing is staged. */
  check(options?: StepOptions): Promise<MigrationReport>
  /** Continues from the end of the journal until the migration is complete or needs a person. */
  run(options?: StepOptions): Promise<MigrationReport>
  /**
   * Applies corrections, or stages records again that failed or were held back with one of the codes. Then
   * continues like `run`.
   */
  correct(
    corrections: Source | { readonly again: readonly string[] },
    options?: StepOptions,
  ): Promise<MigrationReport>
  /** Looks up each identity again. Rejects with `bad_journal` before the first `run`. */
  reconcile(options?: StepOptions): Promise<MigrationReport>
  /**
   * Deletes the rows that the report of a stalled run lists, and looks up their users. A user then has an
   * account, fails because another account has the login, or is imported by the next `run`. Rejects with
   * `bad_journal` if no run has stalled.
   */
  unblock(options?: StepOptions): Promise<MigrationReport>
  /** Returns a report from the journal alone. */
  status(): Promise<MigrationReport>
  /** Yields a report of each identity of the source, in its order. */
  identities(): AsyncIterable<IdentityReport>
  /** Closes the journal, so that another run can open it. */
  close(): Promise<void>
}

const CORE_FUNCTIONS = ['stageUsers', 'rows', 'coreIdOf'] satisfies readonly (keyof CoreClient)[]

/** The range of a number option, and its default. */
export interface NumberRange {
  readonly min: number
  readonly max: number
  readonly default: number
}

export const MIGRATION_NUMBERS = {
  batchUsers: { min: 1, max: 10_000, default: 2000 },
  batchBytes: { min: 65_536, max: 67_108_864, default: 1_000_000 },
  settleSeconds: { min: 0, max: 600, default: 60 },
  pollSeconds: { min: 1, max: 3600, default: 15 },
  stallMinutes: { min: 1, max: 1440, default: 30 },
  lookUps: { min: 1, max: 64, default: 8 },
} as const satisfies { readonly [name in keyof MigrationOptions]?: NumberRange }

const integer = ({ min, max, default: fallback }: NumberRange) =>
  integerBetween(min, max).default(fallback)

const time = ({ min, max, default: fallback }: NumberRange, unit: string) =>
  numberBetween(min, max, unit).default(fallback)

const source = z.custom<Source>(isSource, {
  error: 'must be { file } or { name, records }',
})

const warning = z.enum(USER_WARNING_CODES, {
  error: `must be one of ${USER_WARNING_CODES.join(', ')}`,
})

const schema = lazy(() =>
  optionsObject({
    core: z.custom<CoreClient>((value) => hasFunctions(value, CORE_FUNCTIONS), {
      error: 'must be a client of the core, such as coreClient returns',
    }),
    source,
    journal: z.custom<Journal>((value) => hasFunctions(value, ['read', 'append', 'close']), {
      error: 'must be a journal, such as fileJournal returns',
    }),
    onProgress: functionOf<(event: MigrationProgress) => unknown>().optional(),
    batchUsers: integer(MIGRATION_NUMBERS.batchUsers),
    batchBytes: integer(MIGRATION_NUMBERS.batchBytes),
    settleSeconds: time(MIGRATION_NUMBERS.settleSeconds, 'seconds'),
    pollSeconds: time(MIGRATION_NUMBERS.pollSeconds, 'seconds'),
    stallMinutes: time(MIGRATION_NUMBERS.stallMinutes, 'minutes'),
    lookUps: integer(MIGRATION_NUMBERS.lookUps),
    acceptWarnings: z.array(warning, { error: 'must be a list of warnings' }).default([]),
    allowForeignRows: flag().default(false),
    corrections: z.array(source, { error: 'must be a list of sources' }).default([]),
  }),
)

export type MigrationSettings = Required<Omit<MigrationOptions, 'onProgress'>> & {
  readonly onProgress?: MigrationOptions['onProgress'] | undefined
}

/** @throws TypeError if an option is unknown, of the wrong type or out of range. */
export const parseSettings = (input: unknown): MigrationSettings =>
  parseOptions('openMigration options', schema, input)

/** Corrections, or the records that failed or were held back with one of the codes. */
export type CorrectionRequest = Source | { readonly again: readonly string[] }

/** @throws TypeError if `input` is neither a source nor a list of codes. */
export function parseCorrectionRequest(input: unknown): CorrectionRequest {
  if (isSource(input)) return input
  const codes = isObject(input) && Object.keys(input).length === 1 ? input['again'] : undefined
  if (Array.isArray(codes) && codes.length > 0 && codes.every(isFailureCode))
    return { again: codes }
  throw new TypeError(
    'correct: corrections must be { file }, { name, records }, or { again } with codes such as ' +
      'E004 or login_taken',
  )
}

function isSource(value: unknown): value is Source {
  if (!isObject(value)) return false
  const names = Object.keys(value).sort().join()
  if (names === 'file') return isNonEmptyString(value['file'])
  return (
    names === 'name,records' &&
    isNonEmptyString(value['name']) &&
    typeof value['records'] === 'function'
  )
}

const isNonEmptyString = (value: unknown): boolean => typeof value === 'string' && value !== ''
