import { parseArgs } from 'node:util'
import { usageError } from './command-failure.js'

export interface OptionSpec {
  readonly kind: 'text' | 'flag'
  /** The placeholder for the value in the help, such as `FILE`. */
  readonly value?: string
  readonly help: string
  /** Whether it may be given more than once. */
  readonly repeatable?: true
  /** Whether its value may be the empty string. */
  readonly mayBeEmpty?: true
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>

/** Options that the help shows together. */
export interface OptionGroup {
  readonly title: string
  readonly options: OptionSpecs
}

export interface Arguments {
  /** The arguments that are not options. */
  readonly values: readonly string[]
  flag(name: string): boolean
  text(name: string): string | undefined
  texts(name: string): readonly string[]
  /** @throws CommandFailure (2) if it was not given. */
  required(name: string): string
}

/** The options of every command. */
export const COMMON_OPTIONS: OptionSpecs = {
  json: { kind: 'flag', help: 'print JSON' },
  help: { kind: 'flag', help: 'show this help' },
  version: { kind: 'flag', help: 'show the package version' },
}

const REDIS_SCHEME = /\b(?:redis|valkey)/i
const URL_WITH_PASSWORD = /:\/\/[^/@\s:]*:[^/@\s]*@/
const TOKEN_HEADER = /\beyJ[\w-]/

// The look-behinds let a match begin only at the start of a run of its characters. Without them, the
// search would take time that grows with the square of the length.
const SCHEMES = /(?<![a-z+])[a-z+]+(?=:\/\/)/gi
const FIRST_SEGMENTS = /(?<![\w-])[\w-]+(?=\.[\w-]+\.[\w-])/g

const holdsRedisUrl = (text: string): boolean =>
  Array.from(text.matchAll(SCHEMES)).some(([scheme]) => REDIS_SCHEME.test(scheme))

const holdsToken = (text: string): boolean =>
  Array.from(text.matchAll(FIRST_SEGMENTS)).some(([segment]) => TOKEN_HEADER.test(segment))

/**
 * Refuses secrets in arguments, because the process list and the shell's history show arguments. The error
 * contains no part of the secret.
 *
 * @throws CommandFailure (2)
 */
export function refuseSecrets(argv: readonly string[]): void {
  if (argv.some((text) => holdsRedisUrl(text) || URL_WITH_PASSWORD.test(text))) {
    throw usageError(
      'usage',
      'do not pass a Redis URL or a URL with a password as an argument: other users can see it in ' +
        'the process list. Set REDIS_URL or use a file with --redis',
    )
  }
  if (argv.some(holdsToken)) {
    throw usageError(
      'usage',
      'do not pass a token as an argument: other users can see it in the process list. Pass it on ' +
        'standard input',
    )
  }
}

/** The arguments that a command accepts. */
interface Grammar {
  readonly options: OptionSpecs
  readonly maxValues: number
  /** The number of words before these on the command line. Default: 0. */
  readonly wordsBefore?: number
  /** Returns the error for an option of another command; `undefined` if no command has the option. */
  readonly misplaced?: (name: string) => string | undefined
}

/**
 * Reads options and values. An error names a word only if some command has an option of that name.
 * Otherwise it gives the word's position, because the word may be a secret.
 *
 * @throws CommandFailure (2)
 */
export function readArguments(
  argv: readonly string[],
  { options, maxValues, wordsBefore = 0, misplaced }: Grammar,
): Arguments {
  const specs: OptionSpecs = { ...options, ...COMMON_OPTIONS }
  const given = new Map<string, string[]>()
  const values: string[] = []
  for (const word of parseWords(argv, specs)) {
    if (word.kind === 'positional') values.push(word.value)
    if (word.kind !== 'option') continue
    const spec = Object.hasOwn(specs, word.name) ? specs[word.name] : undefined
    if (spec === undefined) {
      const place = inPlace(word.index + wordsBefore)
      const fault = misplaced?.(word.name) ?? `unknown option${place}${adviceOn(word, specs)}`
      throw usageError('usage', fault)
    }
    const value = readValue(word, spec)
    const earlier = given.get(word.name)
    if (earlier !== undefined && spec.kind === 'text' && !spec.repeatable) {
      throw usageError('usage', `--${word.name} is given more than once`)
    }
    given.set(word.name, [...(earlier ?? []), value])
  }
  if (values.length > maxValues) {
    const accepted = maxValues === 0 ? 'none' : `at most ${maxValues}`
    throw usageError(
      'usage',
      `too many arguments besides the options: ${values.length}, but the command accepts ${accepted}: ` +
        'put quotes around a value with spaces, and the name of an option before its value',
    )
  }
  return argumentsOf(values, given, specs)
}

/** The position of a word on the command line, for a message; `index` starts at 0. */
export const inPlace = (index: number): string => ` (argument ${index + 1})`

type ParsedWord = NonNullable<ReturnType<typeof parseArgs>['tokens']>[number]
type OptionWord = Extract<ParsedWord, { kind: 'option' }>

/** Suggests the options that begin with the same two letters. Omits the word, which may be a secret. */
function adviceOn({ name, rawName }: OptionWord, specs: OptionSpecs): string {
  if (!rawName.startsWith('--')) return ': options begin with two hyphens, such as --json'
  const similar = Object.keys(specs).filter((known) => known.slice(0, 2) === name.slice(0, 2))
  return similar.length === 0 ? '' : `: use ${similar.map((known) => `--${known}`).join(' or ')}`
}

/** Does not use strict mode, because its errors quote unknown words. */
function parseWords(argv: readonly string[], specs: OptionSpecs): ParsedWord[] {
  const options = Object.fromEntries(
    Object.entries(specs).map(([name, { kind }]) => [
      name,
      { type: kind === 'flag' ? ('boolean' as const) : ('string' as const), multiple: true },
    ]),
  )
  return parseArgs({
    args: [...argv],
    options: { ...options, help: { type: 'boolean', multiple: true, short: 'h' } },
    strict: false,
    allowPositionals: true,
    tokens: true,
  }).tokens
}

function readValue({ name, value, inlineValue }: OptionWord, spec: OptionSpec): string {
  if (spec.kind === 'flag') {
    if (value !== undefined) throw usageError('usage', `--${name} does not accept a value`)
    return ''
  }
  const isNextOption = !inlineValue && value?.startsWith('-')
  if (value === undefined || isNextOption || (value === '' && !spec.mayBeEmpty)) {
    throw usageError('usage', `--${name} needs a value (use --${name}=VALUE if it begins with -)`)
  }
  return value
}

function argumentsOf(
  values: readonly string[],
  given: ReadonlyMap<string, readonly string[]>,
  specs: OptionSpecs,
): Arguments {
  const texts = (name: string): readonly string[] => given.get(name) ?? []
  return {
    values,
    texts,
    flag: (name) => given.has(name),
    text: (name) => texts(name)[0],
    required(name) {
      const [text] = texts(name)
      if (text !== undefined) return text
      const value = specs[name]?.value ?? 'VALUE'
      throw usageError('usage', `--${name} is missing: add --${name} ${value}`)
    },
  }
}
