import { isBackingOff } from '../../base/back-off.js'
import { readClock } from '../../base/clock.js'
import type { InnerOptions, InnerSource } from './cached-source.js'
import { mint } from './mint.js'
import { afterTokenFailure, TokenSourceError } from './token-source-error.js'
import { healthOfTrouble, type Trouble } from './token-state.js'

/** So that a burst of calls does not become one of connections to the core. */
const MAX_REQUESTS_AT_ONCE = 8

/**
 * Asks for a token at every call. A call that waits for its turn longer than `timeoutMs` fails, and
 * while failures back off every call does.
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

  /** Requests that failed together are one failure. */
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

/** Lets so many pieces of work run at once, and the others in the order in which they came. */
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
