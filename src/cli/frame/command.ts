import type { Arguments, OptionGroup, OptionSpecs } from './arguments.js'
import type { Report } from './command-failure.js'

/** Where a command's text goes. */
interface TextSink {
  write(text: string): unknown
}

/** One that may be a terminal. */
interface TerminalSink extends TextSink {
  readonly isTTY?: boolean
  readonly columns?: number
}

/** What the command has of the process that it runs in. */
export interface CommandIo {
  readonly stdin: AsyncIterable<Uint8Array | string> & { readonly isTTY?: boolean }
  readonly stdout: TextSink
  readonly stderr: TerminalSink
  readonly env: Readonly<Record<string, string | undefined>>
}

/** What one run of a command is given. */
export interface CommandContext extends Pick<CommandIo, 'stdin' | 'env'> {
  readonly arguments: Arguments
  /** Shows a line on standard error meanwhile, such as a prompt; with `--json` nothing. */
  note(line: string): void
  /** Shows an object as a line on standard output meanwhile, with `--json`; else nothing. */
  event(json: object): void
  /** Where a line can be drawn again: standard error, if it is a terminal, and not with `--json`. */
  readonly screen: Screen | undefined
}

/** A line of a terminal that is drawn again. */
export interface Screen {
  /** Characters in a line. */
  readonly columns: number
  /** Instead of what was drawn before; the empty text wipes it. */
  draw(line: string): void
}

/** What the process ends with. */
export type ExitCode = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 130

/** What a command has found. Exit code 0: all is well; 1: a fault, see `oneMeans`; more: `otherExitCodes`. */
export interface CommandResult extends Report {
  readonly exitCode: ExitCode
  /** One line on standard error: what was not done, and why. */
  readonly complaint?: string
}

/** One command of `service-auth`. */
export interface Command {
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** What may stand behind the name, one line for each form. */
  readonly usage: readonly string[]
  /** The most arguments that are no options. Default: 0. */
  readonly maxValues?: number
  readonly options: OptionSpecs
  /** The same, as the help shows them. Default: all in one. */
  readonly optionGroups?: readonly OptionGroup[]
  /** What exit code 1 says. */
  readonly oneMeans: string
  /** What others say that only this command has, or that say something else of it. */
  readonly otherExitCodes?: readonly (readonly [code: string, meaning: string])[]
  /** Whole lines, as typed. */
  readonly examples: readonly string[]
  /** @throws CommandFailure for the exit codes 2 and 3. */
  run(context: CommandContext): Promise<CommandResult>
}
