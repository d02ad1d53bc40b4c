import type { CommandContext } from './command.js'

/** Ctrl-C ends the work early and cleanly; the next one ends the process, as ever. */
export async function untilInterrupted<Result>(
  { note }: Pick<CommandContext, 'note'>,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const interrupted = new AbortController()
  const interrupt = (): void => {
    note('interrupted: what is under way is ended; Ctrl-C once more ends at once')
    interrupted.abort()
  }
  process.once('SIGINT', interrupt)
  try {
    return await work(interrupted.signal)
  } finally {
    process.off('SIGINT', interrupt)
  }
}
