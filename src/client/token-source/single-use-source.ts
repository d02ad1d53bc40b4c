import { isBackingOff } from '../../base/back-off.js'
import { readClock } from '../../base/clock.js'
import type { InnerOptions, InnerSource } from './cached-source.js'
import { mint } from './mint.js'
import { afterTokenFailure, TokenSourceError } from './token-source-error.js'
import { failureHealth, type LastTokenFailure } from './token-state.js'

/** Limits the connections to the core during a burst of calls. */
const MAX_CONCURRENT_REQUESTS = 8

/**
 * Requests a token for every call. A call fails if it waits for its turn longer than `timeoutMs`, and
 * every call fails during the back-off after a failure.
 */
export function createSingleUseSource({ minting, clock, closing }: InnerOptions): InnerSource {
  const limit = limitConcurrency(MAX_CONCURRENT_REQUESTS)
  let lastFailure: (LastTokenFailure & { readonly since: number }) | undefined

  async function mintOne(calledAt: number): Promise<string> {
    closing.throwIfAborted()
    const requestedAt = readClock(clock)
    if (lastFailure !== undefined && isBackingOff(lastFailure, requestedAt)) throw lastFailure.error
    const timeoutMs = minting.timeoutMs - (requestedAt - calledAt)
    if (timeoutMs <= 0) throw new TokenSourceError('core_timeout')
    try {
      const token = await mint({ ...minting, timeoutMs }, closing)
      lastFailure = undefined
      return token
    } catch (error) {
      if (error instanceof TokenSourceError) recordFailure(error, requestedAt)
      throw error
    }
  }

  /** Counts the failures of concurrent requests as one. */
  function recordFailure(error: TokenSourceError, requestedAt: number): void {
    if (lastFailure !== undefined && requestedAt <= lastFailure.since) return
    const at = readClock(clock)
    const backOff = afterTokenFailure(lastFailure, error, { at, jitter: Math.random() })
    lastFailure = { ...backOff, error, since: at }
  }

  return {
    async token() {
      const calledAt = readClock(clock)
      return limit.run(() => mintOne(calledAt))
    },
    health: () => ({ state: 'single_use', ...failureHealth(lastFailure, readClock(clock)) }),
  }
}

/** Limits how many tasks run concurrently; further ones start in the order of their calls. */
interface ConcurrencyLimit {
  run<T>(work: () => Promise<T>): Promise<T>
}

export function limitConcurrency(maxConcurrent: number): ConcurrencyLimit {
  const waiting: (() => void)[] = []
  let running = 0

  function next(): void {
    const start = waiting.shift()
    if (start === undefined) running -= 1
    else start()
  }

  return {
    async run(work) {
      if (running < maxConcurrent) running += 1
      else await new Promise<void>((start) => waiting.push(start))
      try {
        return await work()
      } finally {
        next()
      }
    },
  }
}
