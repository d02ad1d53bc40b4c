/** What ends a step of a call before its own end. */
export interface Limit {
  readonly ms: number
  /** The caller's. */
  readonly signal: AbortSignal | undefined
}

/** What `within` rejects with when the time is over. */
export const TIME_IS_UP: Error = new Error('the time is up')

/**
 * Does the work until its time is up, then rejects with `TIME_IS_UP`, or until the caller aborts, then
 * rejects with the caller's reason. It does not wait for work that ignores the signal of `ending`, which
 * is made when it is read.
 */
export async function within<T>(
  { ms, signal }: Limit,
  work: (ending: Pick<AbortController, 'signal'>) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted()
  if (ms <= 0) throw TIME_IS_UP
  const ending = new AbortController()
  let end: (reason: unknown) => void = () => {}
  const abort = (): void => end(signal?.reason)
  const timer = setTimeout(() => end(TIME_IS_UP), ms)
  timer.unref()
  signal?.addEventListener('abort', abort)
  try {
    return await new Promise((resolve, reject) => {
      // Not by a listener of the signal that the work gets: those cost more than all else here.
      end = (reason) => {
        reject(reason)
        ending.abort(reason)
      }
      work(ending).then(resolve, reject)
    })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}
