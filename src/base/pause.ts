import { onAbort } from './on-abort.js'

/**
 * Waits; rejects with the signal's reason when the signal aborts. The timer keeps the process alive, because a program
 * that only awaits a call would otherwise end before the call does.
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
