/**
 * Why a command failed: a closed list, in `error.code` of `--json`.
 *
 * - `usage`: the command, an option or a value is wrong.
 * - `file`: a file is missing, unreadable, too large or open to others.
 * - `policy`: the policy is not JSON or invalid.
 * - `redis_options`: the location of Redis is missing or invalid.
 * - `input`: standard input does not contain the requested input.
 * - `dependency_missing`: a package that the command needs is not installed.
 * - `key_set_unavailable`, `store_unavailable`: it cannot be reached.
 * - `bad_source`, `bad_corrections`, `bad_journal`, `journal_in_use`: an error of a migration; see
 *   its report.
 * - `core_fault`: the core cannot be called, or its answer is invalid.
 * - `internal`: a defect of the command itself.
 */
export type FailureCode =
  | 'usage'
  | 'file'
  | 'policy'
  | 'redis_options'
  | 'input'
  | 'dependency_missing'
  | 'key_set_unavailable'
  | 'store_unavailable'
  | 'bad_source'
  | 'bad_corrections'
  | 'bad_journal'
  | 'journal_in_use'
  | 'core_fault'
  | 'internal'

/** The output of a command: lines for people, or with `--json` the members of its object. */
export interface Report {
  readonly lines: readonly string[]
  readonly json: Readonly<Record<string, unknown>>
}

/** Ends a command with one line on standard error. The message contains no value that the user gave. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure'
  readonly exitCode: 2 | 3
  readonly code: FailureCode
  /** Output that is shown in spite of the failure. */
  readonly report: Report | undefined

  constructor(exitCode: 2 | 3, fault: { code: FailureCode; message: string }, report?: Report) {
    super(fault.message)
    this.exitCode = exitCode
    this.code = fault.code
    this.report = report
  }
}

/** Exit code 2: the input is wrong, and nothing changed. */
export const usageError = (code: FailureCode, message: string): CommandFailure =>
  new CommandFailure(2, { code, message })

/**
 * Exit code 3: a dependency cannot be reached. If it is unknown whether something changed, the message
 * says so.
 */
export const unreachableError = (
  code: FailureCode,
  message: string,
  report?: Report,
): CommandFailure => new CommandFailure(3, { code, message }, report)

/** Maps the package's option names to the options of the command. */
export type OptionNames = ReadonlyMap<string, string>

/** Replaces the package's option names in a message with the options of the command. */
export const withOptionNames = (message: string, names: OptionNames): string =>
  message
    .replace(/^\w+ options: /, '')
    .replaceAll(/(?<![\w-])[a-zA-Z]+\b/g, (word) => names.get(word) ?? word)
