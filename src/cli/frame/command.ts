import type { Arguments, OptionSpecs } from './arguments.js'
import type { Report } from './command-failure.js'

interface TextSink {
  write(text: string): unknown
}

/** An output that may be a terminal. */
interface TerminalSink extends TextSink {
  readonly isTTY?: boolean
  readonly columns?: number
}

/** The parts of the process that the command uses. */
export interface CommandIo {
  readonly stdin: AsyncIterable<Uint8Array | string> & { readonly isTTY?: boolean }
  readonly stdout: TextSink
  readonly stderr: TerminalSink
  readonly env: Readonly<Record<string, string | undefined>>
}

/** The input and output of one run of a command. */
export interface CommandContext extends Pick<CommandIo, 'stdin' | 'env'> {
  readonly arguments: Arguments
  /** Shows a line on standard error during the run, such as a prompt; shows nothing with `--json`. */
  note(line: string): void
  /** Like `note`, but a terminal shows only the last such line, and none in the end. */
  progress(line: string): void
  /** Prints an object as a line on standard output during the run, only with `--json`. */
  event(json: object): void
}

export type ExitCode = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 130

/** The result of a command. Exit code 0: success; others: `exitCodes`. */
export interface CommandResult extends Report {
  readonly exitCode: ExitCode
  /** One line for standard error, with what was not done and why. */
  readonly errorLine?: string
}

/** A command of `service-auth`. */
export interface Command {
  readonly name: string
  /** One line for the list of commands. */
  readonly summary: string
  /** The arguments after the command name, one line per form. */
  readonly usage: readonly string[]
  /** The maximum number of arguments that are not options. Default: 0. */
  readonly maxValues?: number
  /** Its own options, in groups by the titles that the help gives them. */
  readonly options: Readonly<Record<string, OptionSpecs>>
  /** The meaning of exit code 1, and of those that have another meaning for this command alone. */
  readonly exitCodes: Readonly<Record<string, string>>
  /** @throws CommandFailure for the exit codes 2 and 3. */
  run(context: CommandContext): Promise<CommandResult>
}

/** Ctrl-C, the stop of a service or container, and a closed terminal. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Runs `work`. The first of `SIGNALS` calls `onInterrupt` and aborts the `AbortSignal` of `work`, which
 * then returns its result so far. A repetition of that signal has no listener and ends the process.
 */
export async function untilInterrupted<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
  onInterrupt: () => void = () => {},
): Promise<Result> {
  const interrupted = new AbortController()
  const interrupt = (): void => {
    if (!interrupted.signal.aborted) onInterrupt()
    interrupted.abort()
  }
  for (const name of SIGNALS) process.once(name, interrupt)
  try {
    return await work(interrupted.signal)
  } finally {
    for (const name of SIGNALS) process.off(name, interrupt)
  }
}
