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
