import { type ParseArgsConfig, parseArgs } from 'node:util'
import { isShortText, SHORT_TEXT_FAULT } from '../../base/options.js'
import { usageError } from './command-failure.js'

/**
 * Options by their form, each with its help. `--all` is a flag, and `--file FILE` has a value. The value of
 * `--prefix [TEXT]` may be empty, and `--header LINE...` may be given more than once.
 */
export type OptionSpecs = Readonly<Record<string, string>>

/** The name of an option, and the placeholder of its value in the help; a flag has none. */
const partsOf = (form: string): readonly string[] => form.slice('--'.length).split(' ')

/** The form in a sentence or in the help, where brackets would say that the value may be left out. */
export const shownForm = (form: string): string => form.replace(/\[(\w+)\]/, '$1')

export const optionNames = (specs: OptionSpecs): string[] =>
  Object.keys(specs).flatMap((form) => partsOf(form).slice(0, 1))

export interface Arguments {
  /** The arguments that are not options. */
  readonly values: readonly string[]
  has(name: string): boolean
  text(name: string): string | undefined
  /** The text of an option that a record keeps. @throws CommandFailure (2) if it is too long. */
  shortText(name: string): string | undefined
  texts(name: string): readonly string[]
  /** @throws CommandFailure (2) if it was not given. */
  required(name: string): string
  /** @throws CommandFailure (2) if one of the options was given; `why` follows its name in the message. */
  refuse(names: readonly string[], why: string): void
  /** Returns the option that was given. @throws CommandFailure (2) unless it is exactly one of the two. */
  either<Name extends string>(one: Name, other: Name): Name
}

/** The options of every command. */
export const COMMON_OPTIONS: OptionSpecs = {
  '--json': 'print JSON',
  '--help': 'show this help',
  '--version': 'show the package version',
}

// Each begins at `://` or a dot, from which it looks back, so that it reads no text twice: an argument may be long.
const REDIS_URL = /:\/\/(?<=\b(?:redis|valkey)[a-z+]*:\/\/)/i
const URL_WITH_PASSWORD = /:\/\/[^/@\s:]*:[^/@\s]*@/
const TOKEN = /\.(?<=(?<![A-Za-z])eyJ[\w-]+\.)[\w-]+\.[\w-]/

/**
 * Refuses secrets in arguments, because the process list and the shell's history show arguments. The error
 * contains no part of the secret.
 *
 * @throws CommandFailure (2)
 */
export function refuseSecrets(argv: readonly string[]): void {
  if (argv.some((text) => REDIS_URL.test(text) || URL_WITH_PASSWORD.test(text))) {
    throw usageError(
      'do not pass a Redis URL or a URL with a password as an argument: other users can see it in ' +
        'the process list. Set REDIS_URL or use a file with --redis',
    )
  }
  if (argv.some((text) => TOKEN.test(text))) {
    throw usageError(
      'do not pass a token as an argument: other users can see it in the process list. Pass it on ' +
        'standard input',
    )
  }
}

/** What a command accepts. */
interface Grammar {
  readonly options: OptionSpecs
  /** The maximum number of arguments that are not options. Default: 0. */
  readonly maxValues?: number | undefined
}

/**
 * Reads options and values. An error names an option only if the command has it: any other word may be a
 * secret.
 *
 * @throws CommandFailure (2)
 */
export function readArguments(
  argv: readonly string[],
  { options, maxValues = 0 }: Grammar,
): Arguments {
  const forms = Object.keys({ ...options, ...COMMON_OPTIONS })
  const { values: given, positionals } = parseWords(argv, forms)
  const has = (name: string): boolean => given[name] !== undefined
  const texts = (name: string): readonly string[] => [given[name] ?? []].flat().map(String)
  const formOf = (name: string) => forms.find((form) => partsOf(form)[0] === name) ?? ''
  for (const [name = '', value] of forms.map(partsOf)) {
    if (value === undefined) continue
    if (texts(name).length > 1 && !value.endsWith('...'))
      throw usageError(`--${name} is given more than once`)
    if (texts(name).includes('') && !value.startsWith('['))
      throw usageError(`--${name} needs a value`)
  }
  if (positionals.length > maxValues) {
    const hint = 'put quotes around a value with spaces, and the name of an option before its value'
    throw usageError(`too many arguments besides the options: ${hint}`)
  }
  return {
    values: positionals,
    texts,
    has,
    text: (name) => texts(name)[0],
    shortText(name) {
      const [text] = texts(name)
      if (text === undefined || isShortText(text)) return text
      throw usageError(`--${name} ${SHORT_TEXT_FAULT}`)
    },
    required(name) {
      const [text] = texts(name)
      if (text !== undefined) return text
      throw usageError(`--${name} is missing: add ${shownForm(formOf(name))}`)
    },
    refuse(names, why) {
      const stray = names.find(has)
      if (stray !== undefined) throw usageError(`--${stray} ${why}`)
    },
    either(one, other) {
      if (has(one) !== has(other)) return has(one) ? one : other
      throw usageError(`use either ${shownForm(formOf(one))} or ${shownForm(formOf(other))}`)
    },
  }
}

function parseWords(argv: readonly string[], forms: readonly string[]) {
  const options: NonNullable<ParseArgsConfig['options']> = {}
  for (const [name = '', value] of forms.map(partsOf)) {
    options[name] = { type: value === undefined ? 'boolean' : 'string', multiple: true }
  }
  options['help'] = { type: 'boolean', multiple: true, short: 'h' }
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true })
  } catch (error) {
    throw usageError(faultOf(error as NodeJS.ErrnoException))
  }
}

/** Node names the option that lacks a value or has a needless one, but also quotes a word that it does not know. */
function faultOf({ code, message }: NodeJS.ErrnoException): string {
  const [line = ''] = message.split('\n')
  return code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE'
    ? line.replace('Option', 'option')
    : 'unknown option'
}

const UNITS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

const DURATION = /^(\d{1,9})(ms|s|m|h|d)$/

interface DurationRange {
  readonly minMs: number
  readonly maxMs: number
}

/**
 * Parses a text such as `250ms`, `5s`, `15m`, `2h` or `7d` into milliseconds. `name` is the name of
 * the option, such as `--timeout`.
 *
 * @throws CommandFailure (2) if the text has another form or is out of range.
 */
export function parseDuration(name: string, text: string, range: DurationRange): number {
  const [, count, unit] = DURATION.exec(text) ?? []
  if (count === undefined || unit === undefined) {
    throw usageError(`${name} must be a number and a unit, such as 250ms, 5s, 15m, 2h or 7d`)
  }
  const ms = Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS]
  if (ms < range.minMs || ms > range.maxMs) {
    const bounds = `${formatExactDuration(range.minMs)} to ${formatExactDuration(range.maxMs)}`
    throw usageError(`${name} must be from ${bounds}`)
  }
  return ms
}

/** Returns the shortest exact text that `parseDuration` reads. */
export function formatExactDuration(ms: number): string {
  const exactUnits = Object.entries(UNITS_MS).filter(([, size]) => ms >= size && ms % size === 0)
  const [unit, size] = exactUnits.at(-1) ?? ['ms', 1]
  return `${ms / size}${unit}`
}
