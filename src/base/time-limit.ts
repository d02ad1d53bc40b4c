import { abortWith } from './on-abort.js'

/** One for all: a signal that aborts without a reason makes an error, with its stack, for each call. */
const ENDED = new Error('the work has ended')

interface TimeLimit {
  readonly timeoutMs: number
  /** Ends the work from outside; its reason is what the caller gets. */
  readonly signal: AbortSignal
  /** Creates the timeout error. */
  readonly timedOut: () => Error
}

/**
 * Rejects on timeout or when the signal aborts, even if the work ignores the signal that it
 * is given. That one aborts in any case once the work has ended, so that nothing is left open.
 */
export async function withinTimeLimit<T>(
  { timeoutMs, signal, timedOut }: TimeLimit,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const stopListening = abortWith(controller, signal)
  const timer = setTimeout(() => controller.abort(timedOut()), timeoutMs)
  timer.unref()
  try {
    return await orAborted(() => work(controller.signal), controller.signal)
  } finally {
    clearTimeout(timer)
    stopListening()
    controller.abort(ENDED)
  }
}

function orAborted<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    work().then(resolve, reject)
  })
}
