import type { Arguments, OptionSpecs } from './arguments.js'
import type { Report } from './failure.js'

/** Where a command's text goes. */
interface TextSink {
  write(text: string): unknown
}

/** What the command has of the process that it runs in. */
export interface CommandIo {
  readonly stdin: AsyncIterable<Uint8Array | string> & { readonly isTTY?: boolean }
  readonly stdout: TextSink
  readonly stderr: TextSink
  readonly env: Readonly<Record<string, string | undefined>>
}

/** What one run of a command is given. */
export interface CommandContext extends Pick<CommandIo, 'stdin' | 'env'> {
  readonly arguments: Arguments
  /** Shows a line on standard error meanwhile, such as a prompt; with `--json` nothing. */
  note(line: string): void
}

/** What a command has found. Exit code 0: all is well; 1: a fault, see `oneMeans`. */
export interface CommandResult extends Report {
  readonly exitCode: 0 | 1
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
  /** What exit code 1 says. */
  readonly oneMeans: string
  /** Whole lines, as typed. */
  readonly examples: readonly string[]
  /** @throws CommandFailure for the exit codes 2 and 3. */
  run(context: CommandContext): Promise<CommandResult>
}
