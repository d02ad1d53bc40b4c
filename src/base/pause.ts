import { onAbort } from './on-abort.js'

/**
 * Waits; rejects with the signal's reason when it is aborted. Unlike timers that work in the
 * background, this one holds the process open: a program that awaits a call has not ended.
 */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const stopListening = signal === undefined ? undefined : onAbort(signal, abort)
    const timer = setTimeout(() => {
      stopListening?.()
      resolve()
    }, ms)
    function abort(): void {
      clearTimeout(timer)
      stopListening?.()
      reject(signal?.reason)
    }
  })
}
