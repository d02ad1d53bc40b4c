import { AsyncResource } from 'node:async_hooks'
import { atDeadline } from './redis-deadline.js'

/** Detects a connection on which nothing arrives although a reply is pending. */
export interface SilenceWatch {
  /** Watches until `reply` settles, and returns it. */
  watch<T>(reply: Promise<T>): Promise<T>
  close(): void
}

/**
 * Calls `onSilence` if no reply at all has arrived for `patienceMs` while one was pending, and again after
 * each further `patienceMs`. The timer never holds the process open, and runs in the async context of
 * this call.
 */
export function watchForSilence(patienceMs: number, onSilence: () => void): SilenceWatch {
  let due = 0
  let lastSignAt = 0
  let callOff: (() => void) | undefined

  const arm = AsyncResource.bind((): void => {
    callOff = atDeadline({ deadline: lastSignAt + patienceMs }, look)
  })

  function look(now: number): void {
    callOff = undefined
    if (due === 0) return
    if (now - lastSignAt >= patienceMs) {
      lastSignAt = now
      onSilence()
    }
    arm()
  }

  function heard(): void {
    due -= 1
    lastSignAt = performance.now()
  }

  return {
    watch(reply) {
      if (due === 0) lastSignAt = performance.now()
      due += 1
      if (callOff === undefined) arm()
      reply.then(heard, heard)
      return reply
    },
    close: () => callOff?.(),
  }
}
