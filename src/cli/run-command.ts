import { createRequire } from 'node:module'
import { printable, printableJson } from '../base/printable.js'
import { coreClient } from '../migration/core/open-core-client.js'
import { fileJournal } from '../migration/journal/file-journal.js'
import { checkStore } from './check-store/check-store.js'
import { allow } from './denylist/allow.js'
import { deny } from './denylist/deny.js'
import { denylist } from './denylist/list.js'
import { doctor } from './doctor/doctor.js'
import {
  type Arguments,
  COMMON_OPTIONS,
  type OptionSpecs,
  readArguments,
  refuseSecrets,
  shownForm,
} from './frame/arguments.js'
import type { Command, CommandIo, ExitCode } from './frame/command.js'
import {
  CommandFailure,
  type FailureCode,
  type Report,
  usageError,
} from './frame/command-failure.js'
import { migrateWith } from './migrate/migrate.js'
import { columns, INDENT } from './output/columns.js'
import { settle } from './settle/settle.js'

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  doctor,
  deny,
  allow,
  denylist,
  checkStore,
  settle,
  migrateWith({ coreClient, fileJournal }),
]

interface CommandOutput extends Report {
  readonly exitCode: ExitCode
  readonly errorLine?: string
  readonly error?: { readonly code: FailureCode; readonly message: string }
}

/**
 * Runs one command; `argv` has the arguments after `service-auth`. All output goes through `printable`:
 * text from files, Redis and the core may contain control characters. An error is one line on standard
 * error, also with `--json`.
 */
export async function run(
  argv: readonly string[],
  io: CommandIo,
  commands: readonly Command[] = COMMANDS,
): Promise<ExitCode> {
  const command = commands.find(({ name }) => name === argv[0])
  const isJson = hasFlag(argv, '--json')
  const notes = notesOn(io.stderr, isJson)
  const { exitCode, lines, json, error, errorLine } = await outputOf(async () => {
    refuseSecrets(argv)
    if (command === undefined) return withoutCommand(argv, commands)
    const { maxValues } = command
    const options: OptionSpecs = Object.assign({}, ...Object.values(command.options))
    const args = readArguments(argv.slice(1), { options, maxValues })
    const event = (json: object): void => {
      if (isJson) io.stdout.write(`${printableJson(json)}\n`)
    }
    const context = { stdin: io.stdin, env: io.env, arguments: args, event, ...notes }
    return generalHelp(args, () => helpOn(command)) ?? command.run(context)
  })
  notes.wipe()
  const named = command === undefined ? '' : `${command.name} `
  const hint = error?.code === 'usage' ? `; see service-auth ${named}--help` : ''
  const fault = error && { ...error, message: error.message + hint }
  if (isJson) {
    const members = { command: command?.name ?? null, ok: exitCode === 0, ...json }
    io.stdout.write(`${printableJson({ ...members, ...(fault && { error: fault }) })}\n`)
  } else {
    for (const line of lines) io.stdout.write(`${printable(line)}\n`)
  }
  const lastLine = fault?.message ?? errorLine
  if (lastLine !== undefined) io.stderr.write(`service-auth: ${printable(lastLine)}\n`)
  return exitCode
}

/** What stands behind `--` is a value. */
function hasFlag(argv: readonly string[], flag: string): boolean {
  const end = argv.indexOf('--')
  return (end === -1 ? argv : argv.slice(0, end)).includes(flag)
}

/** @throws CommandFailure (2) unless help or the version is asked for. */
function withoutCommand(argv: readonly string[], commands: readonly Command[]): CommandOutput {
  const isWord = argv[0]?.startsWith('-') === false
  const readOptions = () => readArguments(argv, { options: {}, maxValues: argv.length })
  const output = isWord ? undefined : generalHelp(readOptions(), () => helpOnAll(commands))
  if (output !== undefined) return output
  const names = commands.map(({ name }) => name).join(', ')
  const fault = isWord ? 'unknown command' : 'a command is missing'
  throw usageError(`${fault}: use one of ${names}, before any option`)
}

/** The output for `--help` and `--version`, if one of them is given. */
function generalHelp(args: Arguments, help: () => string[]): CommandOutput | undefined {
  if (args.has('help')) {
    const lines = help()
    return { exitCode: 0, lines, json: { help: lines.join('\n') } }
  }
  if (!args.has('version')) return undefined
  const version = packageVersion()
  return { exitCode: 0, lines: [version], json: { version } }
}

const DEFAULT_COLUMNS = 80
const WIPE_LINE = '\r\u001b[K'

/** What is shown on standard error while a command runs; nothing with `--json`. */
function notesOn(stderr: CommandIo['stderr'], isJson: boolean) {
  // Some terminals do not know their width and report 0.
  const { isTTY = false, columns: width = 0 } = stderr
  const columns = width || DEFAULT_COLUMNS
  let isDrawn = false
  const wipe = (): void => {
    if (isDrawn) stderr.write(WIPE_LINE)
    isDrawn = false
  }
  const note = (line: string): void => {
    if (isJson) return
    wipe()
    stderr.write(`${printable(line)}\n`)
  }
  const draw = (line: string): void => {
    const text = printable(line)
    // A line that fills the last column would wrap, and half a number would be a wrong number.
    const shown = text.length < columns ? text : `${text.slice(0, Math.max(columns - 4, 0))}...`
    stderr.write(WIPE_LINE + shown)
    isDrawn = true
  }
  return { note, progress: isTTY && !isJson ? draw : note, wipe }
}

async function outputOf(work: () => Promise<CommandOutput>): Promise<CommandOutput> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof CommandFailure)) {
      return { exitCode: 3, lines: [], json: {}, error: defect(error) }
    }
    const { exitCode, code, message, report = { lines: [], json: {} } } = error
    return { exitCode, ...report, error: { code, message } }
  }
}

/** Shows only the kind and the place of an error, because its message may contain a secret. */
function defect(error: unknown): { code: 'internal'; message: string } {
  const kind = error instanceof Error ? error.name : typeof error
  const stack = error instanceof Error ? (error.stack ?? '') : ''
  const [, place] = /([\w.-]+\.[jt]s:\d+):\d+\)?$/m.exec(stack) ?? []
  const where = place === undefined ? kind : `${kind} at ${place}`
  const message = `a bug in service-auth (${where}); it is unknown whether anything changed`
  return { code: 'internal', message }
}

const helpOnAll = (commands: readonly Command[]): string[] => [
  'Usage: service-auth COMMAND [options]',
  ...section('Commands', Object.fromEntries(commands.map(({ name, summary }) => [name, summary]))),
  ...section('Common options', COMMON_OPTIONS),
  '',
  'Pass secrets on standard input, in files that only their owner can access or, for Redis, in',
  'REDIS_URL; never in an argument.',
  ...section('Exit codes', EXIT_CODES),
  '',
  'Run service-auth COMMAND --help for details.',
]

const helpOn = (command: Command): string[] => [
  ...command.usage.map((form, index) =>
    `${index === 0 ? 'Usage:' : '      '} service-auth ${command.name} ${form}`.trimEnd(),
  ),
  '',
  `${command.summary}.`,
  ...Object.entries({ ...command.options, 'Common options': COMMON_OPTIONS }).flatMap(
    ([title, options]) => section(title, options),
  ),
  ...section('Exit codes', { ...EXIT_CODES, ...command.exitCodes }),
]

const section = (title: string, rows: Readonly<Record<string, string>>): string[] => [
  '',
  `${title}:`,
  ...columns(
    Object.entries(rows).map(([form, text]) => [shownForm(form), text]),
    INDENT,
  ),
]

const EXIT_CODES = {
  0: 'success',
  1: 'see the help of the command',
  2: 'invalid command, file or value; nothing changed',
  3: 'unreachable; nothing changed unless the message says otherwise',
}

function packageVersion(): string {
  // By the package's name: the build moves this file, which would break a relative path.
  return createRequire(import.meta.url)('express-service-auth/package.json').version
}
