/** Why a command failed: a closed list, in `error.code` of `--json`. */
export type FailureCode =
  /** The command, an option or a value is wrong. */
  | 'usage'
  /** A file is missing, unreadable, too large or open to others. */
  | 'file'
  /** The policy is not JSON or invalid. */
  | 'policy'
  /** The location of Redis is missing or invalid. */
  | 'redis_options'
  /** Standard input does not contain the requested input. */
  | 'input'
  /** A package that the command needs is not installed. */
  | 'dependency_missing'
  /** It cannot be reached. */
  | 'key_set_unavailable'
  | 'store_unavailable'
  /** An error of a migration; see its report. */
  | 'bad_source'
  | 'bad_corrections'
  | 'bad_journal'
  | 'journal_in_use'
  /** The core cannot be called, or its answer is invalid. */
  | 'core_fault'
  /** A defect of the command itself. */
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
export const usageError = (message: string, code: FailureCode = 'usage'): CommandFailure =>
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
