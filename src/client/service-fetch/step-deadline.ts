/** The limits of one step of a call. */
export interface Limit {
  readonly ms: number
  /** The caller's signal. */
  readonly signal: AbortSignal | undefined
}

/** The error with which `within` rejects when the time has passed. */
export const TIME_IS_UP: Error = new Error('the time is up')

/**
 * Runs the work. Rejects with `TIME_IS_UP` when its time has passed, and with the caller's reason when
 * the caller aborts. Does not wait for work that ignores the signal of `ending`. Node creates that
 * signal only when it is read.
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
      // Not a listener on the work's signal, which would cost more than everything else here.
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
