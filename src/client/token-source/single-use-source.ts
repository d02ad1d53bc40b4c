import { isBackingOff } from '../../base/back-off.js'
import { readClock } from '../../base/clock.js'
import type { InnerOptions, InnerSource } from './cached-source.js'
import { mint } from './mint.js'
import { afterTokenFailure, TokenSourceError } from './token-source-error.js'
import { healthOfTrouble, type Trouble } from './token-state.js'

/** Limits the connections to the core during a burst of calls. */
const MAX_REQUESTS_AT_ONCE = 8

/**
 * Requests a token for every call. A call fails if it waits for its turn longer than `timeoutMs`, and
 * every call fails during the back-off after a failure.
 */
export function createSingleUseSource({ minting, clock, closing }: InnerOptions): InnerSource {
  const turns = createTurns(MAX_REQUESTS_AT_ONCE)
  let trouble: (Trouble & { readonly since: number }) | undefined

  async function mintOne(calledAt: number): Promise<string> {
    closing.throwIfAborted()
    const askedAt = readClock(clock)
    if (trouble !== undefined && isBackingOff(trouble, askedAt)) throw trouble.error
    const timeoutMs = minting.timeoutMs - (askedAt - calledAt)
    if (timeoutMs <= 0) throw new TokenSourceError('core_timeout')
    try {
      const token = await mint({ ...minting, timeoutMs }, closing)
      trouble = undefined
      return token
    } catch (error) {
      if (error instanceof TokenSourceError) note(error, askedAt)
      throw error
    }
  }

  /** Counts the failures of concurrent requests as one. */
  function note(error: TokenSourceError, askedAt: number): void {
    if (trouble !== undefined && askedAt <= trouble.since) return
    const at = readClock(clock)
    const backOff = afterTokenFailure(trouble, error, { at, jitter: Math.random() })
    trouble = { ...backOff, error, since: at }
  }

  return {
    async token() {
      const calledAt = readClock(clock)
      return turns.run(() => mintOne(calledAt))
    },
    health: () => ({ state: 'single_use', ...healthOfTrouble(trouble, readClock(clock)) }),
  }
}

/** Limits how many tasks run concurrently; further ones start in the order of their calls. */
interface Turns {
  run<T>(work: () => Promise<T>): Promise<T>
}

export function createTurns(mostAtOnce: number): Turns {
  const waiting: (() => void)[] = []
  let running = 0

  function next(): void {
    const begin = waiting.shift()
    if (begin === undefined) running -= 1
    else begin()
  }

  return {
    async run(work) {
      if (running < mostAtOnce) running += 1
      else await new Promise<void>((begin) => waiting.push(begin))
      try {
        return await work()
      } finally {
        next()
      }
    },
  }
}
