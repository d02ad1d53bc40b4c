import { printable, printableJson } from '../base/printable.js'
import { coreClient } from '../migration/core/open-core-client.js'
import { fileJournal } from '../migration/journal/file-journal.js'
import { checkStore } from './check-store/check-store.js'
import { allow } from './denylist/allow.js'
import { deny } from './denylist/deny.js'
import { denylist } from './denylist/list.js'
import { doctor } from './doctor/doctor.js'
import { type Arguments, inPlace, readArguments, refuseSecrets } from './frame/arguments.js'
import type { Command, CommandIo, ExitCode, Screen } from './frame/command.js'
import {
  CommandFailure,
  type FailureCode,
  type Report,
  usageError,
} from './frame/command-failure.js'
import { helpOn, helpOnAll, packageVersion } from './frame/help.js'
import { migrateWith } from './migrate/migrate.js'
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

/** `commandIndex` is -1 if no command is given; `command` is `undefined` also if its name is unknown. */
interface CommandLine {
  readonly argv: readonly string[]
  readonly commandIndex: number
  readonly command: Command | undefined
  readonly isJson: boolean
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
  const commandLine = readCommandLine(argv, commands)
  const output = await outputOf(() => execute(commandLine, io, commands))
  const error = output.error && withHint(output.error, commandLine.command)
  if (commandLine.isJson) {
    const ok = output.exitCode === 0
    const command = commandLine.command?.name ?? null
    io.stdout.write(`${printableJson({ command, ok, ...output.json, ...(error && { error }) })}\n`)
  } else {
    for (const line of output.lines) io.stdout.write(`${printable(line)}\n`)
  }
  const errorLine = error?.message ?? output.errorLine
  if (errorLine !== undefined) io.stderr.write(`service-auth: ${printable(errorLine)}\n`)
  return output.exitCode
}

function readCommandLine(argv: readonly string[], commands: readonly Command[]): CommandLine {
  const commandIndex = argv.findIndex((word) => !word.startsWith('-'))
  const command = commands.find(({ name }) => name === argv[commandIndex])
  const end = argv.indexOf('--')
  const isJson = (end === -1 ? argv : argv.slice(0, end)).includes('--json')
  return { argv, commandIndex, command, isJson }
}

async function execute(
  { argv, commandIndex, command, isJson }: CommandLine,
  io: CommandIo,
  commands: readonly Command[],
): Promise<CommandOutput> {
  refuseSecrets(argv)
  const isOption = (name: string): boolean =>
    commands.some(({ options }) => Object.hasOwn(options, name))
  const argsBeforeCommand = readArguments(
    commandIndex === -1 ? argv : argv.slice(0, commandIndex),
    {
      options: {},
      maxValues: 0,
      misplaced: (name) => (isOption(name) ? `put --${name} after the command` : undefined),
    },
  )
  if (commandIndex !== -1 && command === undefined) {
    throw usageError('usage', `unknown command${inPlace(commandIndex)}: ${useOneOf(commands)}`)
  }
  const args =
    command &&
    readArguments(argv.toSpliced(commandIndex, 1), {
      options: command.options,
      maxValues: command.maxValues ?? 0,
      wordsBefore: 1,
      misplaced: (name) => (isOption(name) ? `${command.name} has no option --${name}` : undefined),
    })
  const information = helpOrVersion(command, args ?? argsBeforeCommand, commands)
  if (information !== undefined) return information
  if (command === undefined || args === undefined) {
    throw usageError('usage', `a command is missing: ${useOneOf(commands)}`)
  }
  const note = (line: string): void => {
    if (!isJson) io.stderr.write(`${printable(line)}\n`)
  }
  const event = (json: object): void => {
    if (isJson) io.stdout.write(`${printableJson(json)}\n`)
  }
  const screen = isJson ? undefined : screenOf(io)
  return await command.run({ stdin: io.stdin, env: io.env, arguments: args, note, event, screen })
}

const useOneOf = (commands: readonly Command[]): string =>
  `use one of ${commands.map(({ name }) => name).join(', ')}`

const DEFAULT_COLUMNS = 80
const TO_LINE_START = '\r'
const WIPE_TO_LINE_END = '\u001b[K'

function screenOf({ stderr }: CommandIo): Screen | undefined {
  if (!stderr.isTTY) return undefined
  return {
    // Some terminals do not know their width and report 0.
    columns: stderr.columns || DEFAULT_COLUMNS,
    draw: (line) => stderr.write(TO_LINE_START + printable(line) + WIPE_TO_LINE_END),
  }
}

function helpOrVersion(
  command: Command | undefined,
  args: Arguments,
  commands: readonly Command[],
): CommandOutput | undefined {
  if (args.flag('help')) {
    const lines = command === undefined ? helpOnAll(commands) : helpOn(command)
    return { exitCode: 0, lines, json: { help: lines.join('\n') } }
  }
  if (!args.flag('version')) return undefined
  const version = packageVersion()
  return { exitCode: 0, lines: [version], json: { version } }
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

function withHint(
  error: NonNullable<CommandOutput['error']>,
  command: Command | undefined,
): NonNullable<CommandOutput['error']> {
  if (error.code !== 'usage') return error
  const name = command === undefined ? '' : ` ${command.name}`
  return { ...error, message: `${error.message}; see service-auth${name} --help` }
}
