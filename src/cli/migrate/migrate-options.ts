import { resolve } from 'node:path'
import {
  USER_WARNING_CODES,
  type UserWarningCode,
} from '../../migration/record-validation/user-finding.js'
import type { MigrationOptions } from '../../migration/run/migration.js'
import type { Arguments, OptionGroup, OptionSpec, OptionSpecs } from '../frame/arguments.js'
import { usageError } from '../frame/command-failure.js'
import type { OptionNames } from '../frame/option-names.js'

/** The steps of `migrate`, its first argument. */
export const STEPS = ['check', 'run', 'status', 'correct', 'reconcile', 'unblock', 'clean'] as const
export type Step = (typeof STEPS)[number]

/** An option with a whole number, for `openMigration` or the core client. */
interface NumberOption {
  readonly least: number
  readonly most: number
  readonly help: string
}

const MIGRATION_NUMBERS = {
  batchUsers: { least: 1, most: 10_000, help: 'users per call (default: 2000)' },
  batchBytes: {
    least: 65_536,
    most: 67_108_864,
    help: 'maximum bytes of a call, and of a record (default: 1000000)',
  },
  settleSeconds: {
    least: 0,
    most: 600,
    help: 'seconds after which a call without a reply counts as ended (default: 60)',
  },
  pollSeconds: { least: 1, most: 3600, help: 'seconds between two counts (default: 15)' },
  stallMinutes: {
    least: 1,
    most: 1440,
    help: 'minutes without progress that count as a stall (default: 30)',
  },
  lookUps: { least: 1, most: 64, help: 'concurrent look-ups (default: 8)' },
} as const satisfies Partial<Record<keyof MigrationOptions, NumberOption>>

const CLIENT_NUMBERS = {
  timeoutMs: { least: 1, most: 300_000, help: 'time limit of a call in ms (default: 10000)' },
  stageTimeoutMs: {
    least: 1,
    most: 300_000,
    help: 'time limit of a staging call in ms (default: 120000)',
  },
} as const satisfies Record<string, NumberOption>

const kebab = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** Maps the option names in messages of the package to the options of the command. */
export const MIGRATE_OPTION_NAMES: OptionNames = new Map([
  ['baseUrl', '--core'],
  ['apiKey', 'the API key'],
  ...['allowInsecureHttp', 'acceptWarnings', 'allowForeignRows']
    .concat(Object.keys(MIGRATION_NUMBERS), Object.keys(CLIENT_NUMBERS))
    .map((name): [string, string] => [name, `--${kebab(name)}`]),
])

const numberSpec = ({ help }: NumberOption): OptionSpec => ({ kind: 'text', value: 'N', help })

/** In the order in which a person uses the steps. */
export const MIGRATE_OPTION_GROUPS: readonly OptionGroup[] = [
  {
    title: 'Every step',
    options: {
      journal: {
        kind: 'text',
        value: 'DIR',
        help: 'the folder of the journal, which records every step',
      },
      source: {
        kind: 'text',
        value: 'FILE',
        help: 'the records, NDJSON in UTF-8; status and clean find it in the journal',
      },
    },
  },
  {
    title: 'CORE, for check, run, correct, reconcile and unblock',
    options: {
      core: { kind: 'text', value: 'URL', help: 'the URL of the core, including any path' },
      'api-key-file': { kind: 'text', value: 'FILE', help: 'its API key, in a file of mode 0600' },
      'api-key-stdin': { kind: 'flag', help: 'read the API key from standard input' },
      'allow-insecure-http': { kind: 'flag', help: 'allow http: to other machines' },
      'timeout-ms': numberSpec(CLIENT_NUMBERS.timeoutMs),
      'look-ups': numberSpec(MIGRATION_NUMBERS.lookUps),
    },
  },
  {
    title: 'check, run and correct, which validate the records',
    options: {
      'accept-warnings': {
        kind: 'text',
        value: 'CODE',
        help: 'a warning that does not stop the step',
        repeatable: true,
      },
      'allow-foreign-rows': { kind: 'flag', help: 'start even if the core has other staged rows' },
      'batch-bytes': numberSpec(MIGRATION_NUMBERS.batchBytes),
    },
  },
  {
    title: 'run and correct, which stage the records',
    options: {
      'batch-users': numberSpec(MIGRATION_NUMBERS.batchUsers),
      'stage-timeout-ms': numberSpec(CLIENT_NUMBERS.stageTimeoutMs),
    },
  },
  {
    title: 'run, correct and reconcile, which wait for the core',
    options: {
      'settle-seconds': numberSpec(MIGRATION_NUMBERS.settleSeconds),
      'poll-seconds': numberSpec(MIGRATION_NUMBERS.pollSeconds),
      'stall-minutes': numberSpec(MIGRATION_NUMBERS.stallMinutes),
    },
  },
  {
    title: 'correct, exactly one of',
    options: {
      corrections: { kind: 'text', value: 'FILE', help: 'the corrections, one per line' },
      again: {
        kind: 'text',
        value: 'CODE',
        help: 'stage the records that failed with this code again',
        repeatable: true,
      },
    },
  },
  { title: 'unblock and clean', options: { yes: { kind: 'flag', help: 'confirm the deletion' } } },
]

export const MIGRATE_OPTIONS: OptionSpecs = Object.assign(
  {},
  ...MIGRATE_OPTION_GROUPS.map(({ options }) => options),
)

/** The options that only some steps accept. */
const OF_SOME_STEPS: Readonly<Record<string, readonly Step[]>> = {
  corrections: ['correct'],
  again: ['correct'],
  yes: ['unblock', 'clean'],
}

/**
 * Reads the step from the first argument.
 *
 * @throws CommandFailure (2)
 */
export function readStep(args: Arguments): Step {
  const [word] = args.values
  const step = STEPS.find((name) => name === word)
  if (step === undefined) {
    const what = word === undefined ? 'a step is missing' : 'unknown step'
    throw usageError('usage', `${what}: use one of ${STEPS.join(', ')}`)
  }
  for (const [name, owners] of Object.entries(OF_SOME_STEPS)) {
    if (owners.includes(step) || !args.flag(name)) continue
    throw usageError('usage', `--${name} is for ${owners.join(' and ')} only`)
  }
  return step
}

/** The settings of a step, without the core and the corrections. */
export interface Settings
  extends Omit<MigrationOptions, 'core' | 'journal' | 'source' | 'onProgress' | 'corrections'> {
  /** Absolute; if `undefined`, the path is read from the journal. */
  readonly sourceFile: string | undefined
  /** The absolute path of the journal. */
  readonly directory: string
}

/** @throws CommandFailure (2) */
export function readSettings(args: Arguments): Settings {
  const directory = resolve(args.required('journal'))
  const source = args.text('source')
  return {
    sourceFile: source === undefined ? undefined : resolve(source),
    directory,
    ...readNumbers(args, MIGRATION_NUMBERS),
    acceptWarnings: args.texts('accept-warnings').map(warningOf),
    allowForeignRows: args.flag('allow-foreign-rows'),
  }
}

/** The timeouts of the client that are given. */
export const readClientTimes = (
  args: Arguments,
): { readonly timeoutMs?: number; readonly stageTimeoutMs?: number } =>
  readNumbers(args, CLIENT_NUMBERS)

function readNumbers<Name extends string>(
  args: Arguments,
  numbers: Readonly<Record<Name, NumberOption>>,
): { readonly [name in Name]?: number } {
  const read: { [name in Name]?: number } = {}
  for (const [name, range] of Object.entries<NumberOption>(numbers)) {
    const option = kebab(name)
    const text = args.text(option)
    if (text !== undefined) read[name as Name] = wholeNumber(option, text, range)
  }
  return read
}

function wholeNumber(option: string, text: string, { least, most }: NumberOption): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (number >= least && number <= most) return number
  throw usageError('usage', `--${option} must be a whole number from ${least} to ${most}`)
}

function warningOf(text: string): UserWarningCode {
  const code = USER_WARNING_CODES.find((one) => one === text)
  if (code !== undefined) return code
  throw usageError('usage', `--accept-warnings must be one of ${USER_WARNING_CODES.join(', ')}`)
}
