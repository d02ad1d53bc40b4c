import { createRequire } from 'node:module'
import { columns, INDENT } from '../output/columns.js'
import { COMMON_OPTIONS, type OptionSpecs } from './arguments.js'
import type { Command } from './command.js'

export const helpOnAll = (commands: readonly Command[]): string[] => [
  'Usage: service-auth COMMAND [options]',
  '',
  'Commands:',
  ...columns(
    commands.map(({ name, summary }) => [name, summary]),
    INDENT,
  ),
  '',
  'Common options:',
  ...optionLines(COMMON_OPTIONS),
  '',
  'Pass secrets on standard input, in files that only their owner can access or, for Redis, in',
  'REDIS_URL; never in an argument.',
  '',
  'Exit codes:',
  ...exitCodes('see the help of the command'),
  '',
  'Run service-auth COMMAND --help for details and examples.',
]

export const helpOn = (command: Command): string[] => [
  ...command.usage.map((form, index) =>
    `${index === 0 ? 'Usage:' : '      '} service-auth ${command.name} ${form}`.trimEnd(),
  ),
  '',
  `${command.summary}.`,
  '',
  ...optionHelp(command),
  '',
  'Exit codes:',
  ...exitCodes(command.exit1Help, command.exitCodeHelp),
  '',
  'Examples:',
  ...command.examples.map((line) => INDENT + line),
]

function optionHelp({ options, optionGroups }: Command): string[] {
  const lines = optionLines({ ...options, ...COMMON_OPTIONS })
  if (optionGroups === undefined) return ['Options:', ...lines]
  const names = [...Object.keys(options), ...Object.keys(COMMON_OPTIONS)]
  const groups = [...optionGroups, { title: 'Every command', options: COMMON_OPTIONS }]
  const blocks = groups.map((group) => [
    `${group.title}:`,
    ...lines.filter((_, place) => Object.hasOwn(group.options, names[place] ?? '')),
  ])
  return ['Options, grouped by step:', ...blocks.flatMap((block) => ['', ...block])]
}

const optionLines = (specs: OptionSpecs): string[] =>
  columns(
    Object.entries(specs).map(([name, { value, help }]) => [
      value === undefined ? `--${name}` : `--${name} ${value}`,
      help,
    ]),
    INDENT,
  )

const exitCodes = (exit1Help: string, others: Command['exitCodeHelp'] = []): string[] =>
  columns(
    [
      ...new Map([
        ['0', 'success'],
        ['1', exit1Help],
        ['2', 'invalid command, file or value; nothing changed'],
        ['3', 'unreachable; nothing changed unless the message says otherwise'],
        ...others,
      ]),
    ],
    INDENT,
  )

export function packageVersion(): string {
  // By the package's name: the build moves this file, which would break a relative path.
  return createRequire(import.meta.url)('express-service-auth/package.json').version
}
