/** How long an aborted run waits for a write that is in progress, in milliseconds. */
const GRACE_MS = 5000

/**
 * Performs a write with a signal that aborts `GRACE_MS` after the run's. If the reply arrives meanwhile,
 * the next run need not find out whether the call took effect.
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
