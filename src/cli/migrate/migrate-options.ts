import { resolve } from 'node:path'
import { CLIENT_NUMBERS } from '../../migration/core/open-core-client.js'
import {
  USER_WARNING_CODES,
  type UserWarningCode,
} from '../../migration/record-validation/user-finding.js'
import {
  type CorrectionRequest,
  MIGRATION_NUMBERS,
  type MigrationOptions,
  type NumberRange,
} from '../../migration/run/migration.js'
import { isFailureCode } from '../../migration/run/state/run-state.js'
import type { Arguments, OptionSpecs } from '../frame/arguments.js'
import { usageError } from '../frame/command-failure.js'

/** The steps of `migrate`, its first argument. */
export const STEPS = ['check', 'run', 'status', 'correct', 'reconcile', 'unblock', 'clean'] as const
export type Subcommand = (typeof STEPS)[number]

const NUMBERS = { ...MIGRATION_NUMBERS, ...CLIENT_NUMBERS }

type NumberName = keyof typeof NUMBERS

const NUMBER_HELP: Readonly<Record<NumberName, string>> = {
  batchUsers: 'users per call',
  batchBytes: 'maximum bytes of a call, and of a record',
  settleSeconds: 'seconds after which a call without a reply counts as ended',
  pollSeconds: 'seconds between two counts',
  stallMinutes: 'minutes without progress that count as a stall',
  lookUps: 'concurrent look-ups',
  timeoutMs: 'time limit of a call in ms',
  stageTimeoutMs: 'time limit of a staging call in ms',
}

const kebab = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** The options of the command by their names in messages of the package. */
const OPTION_NAMES: ReadonlyMap<string, string> = new Map([
  ['baseUrl', '--core'],
  ['apiKey', 'the API key'],
  ...['allowInsecureHttp', 'acceptWarnings', 'allowForeignRows']
    .concat(Object.keys(NUMBERS))
    .map((name): [string, string] => [name, `--${kebab(name)}`]),
])

/** Replaces option names in a message of the package with the options of the command. */
export const inCommandWords = (message: string): string =>
  message
    .replace(/^\w+ options: /, '')
    .replaceAll(/(?<![\w-])[a-zA-Z]+\b/g, (word) => OPTION_NAMES.get(word) ?? word)

const numberOptions = (...names: readonly NumberName[]): OptionSpecs =>
  Object.fromEntries(
    names.map((name) => [
      `--${kebab(name)} N`,
      `${NUMBER_HELP[name]} (default: ${NUMBERS[name].default})`,
    ]),
  )

/** By the steps that have them, in the order in which a person uses the steps. */
export const MIGRATE_OPTIONS: Readonly<Record<string, OptionSpecs>> = {
  'Every step': {
    '--journal DIR': 'the folder of the journal, which records every step',
    '--source FILE': 'the records, NDJSON in UTF-8; status and clean find it in the journal',
  },
  'CORE, for check, run, correct, reconcile and unblock': {
    '--core URL': 'the URL of the core, including any path',
    '--api-key-file FILE': 'its API key, in a file of mode 0600',
    '--api-key-stdin': 'read the API key from standard input',
    '--allow-insecure-http': 'allow http: to other machines',
    ...numberOptions('timeoutMs', 'lookUps'),
  },
  'check, run and correct, which validate the records': {
    '--accept-warnings CODE...': 'a warning that does not stop the step',
    '--allow-foreign-rows': 'start even if the core has other staged rows',
    ...numberOptions('batchBytes'),
  },
  'run and correct, which stage the records': numberOptions('batchUsers', 'stageTimeoutMs'),
  'run, correct and reconcile, which wait for the core': numberOptions(
    'settleSeconds',
    'pollSeconds',
    'stallMinutes',
  ),
  'correct, exactly one of': {
    '--corrections FILE': 'the corrections, one per line',
    '--again CODE...': 'stage the records that failed with this code again',
  },
  'unblock and clean': { '--yes': 'confirm the deletion' },
}

/** The options that only some steps accept. */
const STEP_OPTIONS: Readonly<Record<string, readonly Subcommand[]>> = {
  corrections: ['correct'],
  again: ['correct'],
  yes: ['unblock', 'clean'],
}

/**
 * Reads the step from the first argument.
 *
 * @throws CommandFailure (2)
 */
export function readStep(args: Arguments): Subcommand {
  const [word] = args.values
  const step = STEPS.find((name) => name === word)
  if (step === undefined) {
    const what = word === undefined ? 'a step is missing' : 'unknown step'
    throw usageError(`${what}: use one of ${STEPS.join(', ')}`)
  }
  for (const [name, owners] of Object.entries(STEP_OPTIONS)) {
    if (!owners.includes(step)) args.refuse([name], `is for ${owners.join(' and ')} only`)
  }
  return step
}

/** The settings of a step, without the core. */
export interface MigrateSettings {
  /** The absolute path of the journal. */
  readonly directory: string
  /** Absolute; if `undefined`, the path is read from the journal. */
  readonly sourceFile: string | undefined
  readonly options: Omit<
    MigrationOptions,
    'core' | 'journal' | 'source' | 'onProgress' | 'corrections'
  >
}

/** @throws CommandFailure (2) */
export function readSettings(args: Arguments): MigrateSettings {
  const directory = resolve(args.required('journal'))
  const source = args.text('source')
  return {
    directory,
    sourceFile: source === undefined ? undefined : resolve(source),
    options: {
      ...readNumbers(args, MIGRATION_NUMBERS),
      acceptWarnings: args.texts('accept-warnings').map(warningOf),
      allowForeignRows: args.has('allow-foreign-rows'),
    },
  }
}

/** Returns the number options that are given. @throws CommandFailure (2) */
export function readNumbers<Name extends NumberName>(
  args: Arguments,
  numbers: Readonly<Record<Name, NumberRange>>,
): { readonly [name in Name]?: number } {
  const read: { [name in Name]?: number } = {}
  for (const [name, { min, max }] of Object.entries<NumberRange>(numbers)) {
    const option = kebab(name)
    const text = args.text(option)
    if (text === undefined) continue
    const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (!(number >= min && number <= max)) {
      throw usageError(`--${option} must be a whole number from ${min} to ${max}`)
    }
    read[name as Name] = number
  }
  return read
}

function warningOf(text: string): UserWarningCode {
  const code = USER_WARNING_CODES.find((one) => one === text)
  if (code !== undefined) return code
  throw usageError(`--accept-warnings must be one of ${USER_WARNING_CODES.join(', ')}`)
}

/** @throws CommandFailure (2) unless exactly one of the two is given. */
export function readCorrectionRequest(args: Arguments): CorrectionRequest {
  if (args.either('corrections', 'again') === 'corrections') {
    // The journal stores the path, and a later run may start in another folder.
    return { file: resolve(args.required('corrections')) }
  }
  const again = args.texts('again')
  if (again.every(isFailureCode)) return { again }
  throw usageError('--again must be a code from the report, such as E019 or login_taken')
}
