import { readFileSync } from 'node:fs'
import { columns } from '../output/columns.js'
import { COMMON_OPTIONS, type OptionSpecs } from './arguments.js'
import type { Command } from './command.js'

const INDENT = '  '

export const helpOnAll = (commands: readonly Command[]): string[] => [
  'Usage: service-auth COMMAND [options]',
  '',
  'Commands:',
  ...columns(
    commands.map(({ name, summary }) => [name, summary]),
    INDENT,
  ),
  '',
  'Options of every command:',
  ...optionLines(COMMON_OPTIONS),
  '',
  'Secrets come from standard input, from files that only their owner can read or, for Redis,',
  'from REDIS_URL; never from an argument.',
  '',
  'Exit codes:',
  ...exitCodes('a fault was found; see the command'),
  '',
  'service-auth COMMAND --help says more, with examples.',
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
  return ['Options, by the steps that have them:', ...blocks.flatMap((block) => ['', ...block])]
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
        ['0', 'all is well'],
        ['1', exit1Help],
        ['2', 'command, file or value wrong; nothing changed'],
        ['3', 'out of reach; nothing changed, or said to be unknown'],
        ...others,
      ]),
    ],
    INDENT,
  )

export function packageVersion(): string {
  const manifest = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
  return JSON.parse(manifest).version
}
