import { setMaxListeners } from 'node:events'

/** The limits of some work. */
export interface Limit {
  readonly timeoutMs: number
  /** Creates the error of a timeout. */
  readonly timeoutError: () => Error
  /** Cancels the work: the promise rejects with the reason of this signal. */
  readonly signal?: AbortSignal | undefined
  /** Also aborts the work's signal once the work has settled, so that no response body stays open. */
  readonly abortWhenSettled?: boolean
}

interface LimitWithLate<T> extends Limit {
  /** Called with a value that comes after the rejection. An error that comes after it is ignored. */
  readonly onLateValue?: (value: T) => void
}

/** Starts the work. Gets the controller, not its signal, because Node creates the signal only when it is read. */
type Start<T> = (control: Pick<AbortController, 'signal'>) => PromiseLike<T>

/** Shared: `abort` without a reason would create an error, with a stack trace, for each call. */
const SETTLED = new Error('the work has settled')

/**
 * Settles as the work does, or rejects on timeout or when the signal aborts, even if the work ignores the
 * signal that it gets. `work` is a promise, or a function that starts the work. The function is not called if
 * no time is left or the signal has aborted.
 */
export function withDeadline<T>(
  limit: LimitWithLate<T>,
  work: PromiseLike<T> | Start<T>,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const { timeoutMs, signal } = limit
    const isStartFunction = typeof work === 'function'
    const controller = new AbortController()
    let isExpired = false
    const expire = (reason: unknown): void => {
      isExpired = true
      stop()
      reject(reason)
      // `reject` is called here: a listener on the work's signal would cost more than the rest of this function.
      controller.abort(reason)
    }
    const stopTimer = startTimer(timeoutMs, () => expire(limit.timeoutError()))
    const stopListening = signal && onAbort(signal, () => expire(signal.reason))
    const stop = (): void => {
      stopTimer()
      stopListening?.()
    }
    const settle = (): void => {
      stop()
      if (limit.abortWhenSettled) controller.abort(SETTLED)
    }
    if (signal?.aborted) expire(signal.reason)
    else if (isStartFunction && timeoutMs <= 0) expire(limit.timeoutError())
    if (isStartFunction && isExpired) return
    const running = isStartFunction ? start(work, controller) : work
    running.then(
      (value) => {
        settle()
        if (isExpired) limit.onLateValue?.(value)
        else resolve(value)
      },
      (error) => {
        settle()
        reject(error)
      },
    )
  })
}

/** Turns an exception into a rejection. */
async function start<T>(work: Start<T>, control: AbortController): Promise<T> {
  return work(control)
}

/**
 * Calls `expire` after `ms`, once data that arrived by then has been read: a busy event loop is not a slow
 * peer. `expire` gets the time of `performance.now()` up to which all data has been read. The timer may fire
 * a millisecond early and does not keep the process alive.
 *
 * @returns a function that stops it.
 */
export function startTimer(ms: number, expire: (firedAt: number) => void): () => void {
  let immediate: NodeJS.Immediate | undefined
  const timer = setTimeout(() => {
    immediate = setImmediate(expire, performance.now())
  }, ms)
  timer.unref()
  return () => {
    clearTimeout(timer)
    clearImmediate(immediate)
  }
}

/**
 * Waits; rejects with the signal's reason when the signal aborts. The timer keeps the process alive, because a program
 * that only awaits a call would otherwise end before the call does.
 */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const stopListening = signal && onAbort(signal, abort)
    const timer = setTimeout(() => {
      stopListening?.()
      resolve()
    }, ms)
    function abort(): void {
      clearTimeout(timer)
      reject(signal?.reason)
    }
  })
}

/** Calls `listener` when the signal aborts, not if it has aborted already. Returns a function that removes it. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  // Node warns of more than ten listeners, and an app may pass one signal to any number of calls.
  setMaxListeners(0, signal)
  signal.addEventListener('abort', listener, { once: true })
  return () => signal.removeEventListener('abort', listener)
}

/**
 * Aborts the controller when the signal aborts, or immediately if it has aborted. Returns a function that
 * disconnects the two. Replaces `AbortSignal.any`, which on Node 20 loses a timeout signal that nothing else
 * refers to, and leaks memory on a long-lived signal.
 */
export function abortWith(controller: AbortController, signal: AbortSignal): () => void {
  const abort = (): void => controller.abort(signal.reason)
  if (signal.aborted) abort()
  return onAbort(signal, abort)
}
