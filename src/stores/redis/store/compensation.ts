import { AsyncResource } from 'node:async_hooks'

/** Tries to undo what could not be undone at once, until it succeeds. */
export interface TakeBacks<T> {
  add(id: string, work: T): void
  close(): void
}

const RETRY_INTERVAL_MS = 250
/** Beyond this the oldest are given up: about 20 MB. */
const MAX_PENDING = 100_000
/** At a time, so that a store that has just come back is not swamped. */
const BATCH = 200

/**
 * `attempt` rejects while the store is out of reach. The timer never holds the process open, and runs
 * in the async context in which this was called.
 */
export function createTakeBacks<T>(attempt: (work: T) => Promise<unknown>): TakeBacks<T> {
  const pending = new Map<string, T>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  async function takeBack(id: string, work: T): Promise<void> {
    await attempt(work)
    pending.delete(id)
  }

  /** Without a pause for as long as the store takes them. */
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
      // At once, on the same connection: it then runs right behind what it undoes.
      takeBack(id, work).catch(() => schedule())
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      pending.clear()
    },
  }
}
