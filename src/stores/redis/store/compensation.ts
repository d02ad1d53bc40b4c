import { AsyncResource } from 'node:async_hooks'

/** Undoes reservations, with retries until it succeeds. */
export interface TakeBacks<T> {
  add(id: string, work: T): void
  close(): void
}

const RETRY_INTERVAL_MS = 250
/** Beyond this number, about 20 MB, the oldest are dropped. */
const MAX_PENDING = 100_000
/** The number at a time, so that a store that has just recovered is not overloaded. */
const BATCH = 200

/**
 * `attempt` rejects while the store cannot be reached. The timer never holds the process open, and runs
 * in the async context of this call.
 */
export function createTakeBacks<T>(attempt: (work: T) => Promise<unknown>): TakeBacks<T> {
  const pending = new Map<string, T>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  async function takeBack(id: string, work: T): Promise<void> {
    await attempt(work)
    pending.delete(id)
  }

  /** Sends batch after batch without a pause, until one fails. */
  async function sweep(): Promise<void> {
    let isAnswered = true
    while (isAnswered && pending.size > 0) {
      const batch = [...pending].slice(0, BATCH)
      const tries = await Promise.allSettled(batch.map(([id, work]) => takeBack(id, work)))
      isAnswered = tries.every(({ status }) => status === 'fulfilled')
    }
    timer = undefined
    schedule()
  }

  const schedule = AsyncResource.bind((): void => {
    if (timer !== undefined || pending.size === 0 || isClosed) return
    timer = setTimeout(() => void sweep(), RETRY_INTERVAL_MS)
    timer.unref()
  })

  return {
    add(id, work) {
      if (isClosed) return
      const [oldest] = pending.keys()
      if (pending.size >= MAX_PENDING && oldest !== undefined) pending.delete(oldest)
      pending.set(id, work)
      // Immediately, on the same connection, so that Redis runs it right after the call that it undoes.
      takeBack(id, work).catch(() => schedule())
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      pending.clear()
    },
  }
}
