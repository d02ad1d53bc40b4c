import { AsyncResource } from 'node:async_hooks'
import { atDeadline } from '../connection/redis-call.js'

/**
 * Detects a connection on which nothing arrives although a reply is pending. Calls `onStall` if no reply at
 * all has arrived for `stallTimeoutMs` while one was pending, and again after each further
 * `stallTimeoutMs`. The timer never holds the process open, and runs in the async context of this call.
 */
export function detectStalls(stallTimeoutMs: number, onStall: () => void) {
  let pendingReplies = 0
  let lastReplyAt = 0
  let cancel: (() => void) | undefined

  const arm = AsyncResource.bind((): void => {
    cancel = atDeadline({ deadline: lastReplyAt + stallTimeoutMs }, check)
  })

  function check(now: number): void {
    cancel = undefined
    if (pendingReplies === 0) return
    if (now - lastReplyAt >= stallTimeoutMs) {
      lastReplyAt = now
      onStall()
    }
    arm()
  }

  function onReply(): void {
    pendingReplies -= 1
    lastReplyAt = performance.now()
  }

  return {
    /** Watches until `reply` settles, and returns it. */
    watch<T>(reply: Promise<T>): Promise<T> {
      if (pendingReplies === 0) lastReplyAt = performance.now()
      pendingReplies += 1
      if (cancel === undefined) arm()
      reply.then(onReply, onReply)
      return reply
    },
    close: (): void => cancel?.(),
  }
}
