/** Ctrl-C, the end of a service or container, and a terminal that is closed. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Does work that the first of these signals ends early: the work gets the signal and says what it has
 * done. The same signal once more ends the process. `onInterrupt` is called at the first signal.
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
