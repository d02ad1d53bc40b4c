/**
 * Why a command could not do its work: a closed list, in `error.code` of `--json`.
 *
 * - `usage`: the command, an option or a value is wrong.
 * - `file`: a file is missing, unreadable, too large or open to others.
 * - `policy`: the policy is not JSON or invalid.
 * - `redis_options`: what says where Redis is, is missing or invalid.
 * - `input`: what standard input holds is not what was asked for.
 * - `dependency_missing`: a package that the command needs is not installed.
 * - `key_set_unavailable`, `store_unavailable`: out of reach.
 * - `bad_source`, `bad_corrections`, `bad_journal`, `journal_in_use`: of a migration; see its report.
 * - `core_fault`: the core cannot be asked, or answers what it must not.
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

/** What a command has to show: to people by the line, with `--json` as members of its object. */
export interface Report {
  readonly lines: readonly string[]
  readonly json: Readonly<Record<string, unknown>>
}

/** Ends a command with one line on standard error. The message holds no value that was given. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure'
  readonly exitCode: 2 | 3
  readonly code: FailureCode
  /** What is shown all the same. */
  readonly report: Report | undefined

  constructor(exitCode: 2 | 3, fault: { code: FailureCode; message: string }, report?: Report) {
    super(fault.message)
    this.exitCode = exitCode
    this.code = fault.code
    this.report = report
  }
}

/** Exit code 2: what was given is wrong, and nothing has changed. */
export const usageError = (code: FailureCode, message: string): CommandFailure =>
  new CommandFailure(2, { code, message })

/** Exit code 3: out of reach. The message says so where it is not known whether something changed. */
export const unreachableError = (
  code: FailureCode,
  message: string,
  report?: Report,
): CommandFailure => new CommandFailure(3, { code, message }, report)
