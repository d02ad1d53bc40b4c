/** Ctrl-C, the stop of a service or container, and a closed terminal. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Runs work that the first of these signals ends early: the work gets an `AbortSignal` and returns
 * its result so far. A second signal of the same kind ends the process. `onInterrupt` is called at
 * the first signal.
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
