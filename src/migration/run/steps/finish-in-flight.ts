/** Milliseconds for which a write that is under way is waited for once a run is told to end. */
const GRACE_MS = 5000

/**
 * Does a write under a signal of its own, which aborts some time after the run's: a reply that is
 * about to come spares the next run the search for what became of the call.
 */
export async function inGrace<Result>(
  signal: AbortSignal,
  write: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const late = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const begin = (): void => {
    timer = setTimeout(() => late.abort(signal.reason), GRACE_MS)
  }
  signal.throwIfAborted()
  signal.addEventListener('abort', begin, { once: true })
  try {
    return await write(late.signal)
  } finally {
    signal.removeEventListener('abort', begin)
    clearTimeout(timer)
  }
}
