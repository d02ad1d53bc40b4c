import { AsyncResource } from 'node:async_hooks'
import { readClock } from '../../base/clock.js'
import { type Minting, mint } from './mint.js'
import { TokenSourceError } from './token-source-error.js'
import type { TokenSourceHealth } from './token-source-interface.js'
import * as states from './token-state.js'

/** The implementation of a `tokenSource`. */
export interface InnerSource {
  token(after: string | undefined): Promise<string>
  health(): TokenSourceHealth
}

/** The implementation that gives several calls one token. */
interface CachedSource extends InnerSource {
  /** The last token, and when it was requested, in milliseconds of the monotonic clock. */
  current(): states.CurrentToken | undefined
}

export interface InnerOptions {
  readonly minting: Minting
  readonly clock: () => number
  /** Aborts when the source is closed; its reason is the error for pending calls. */
  readonly closing: AbortSignal
}

/**
 * Caches one token and renews it if a renewal is due during a call: one request at a time, no timers.
 * Requests run in the async context in which the source was created, because all calls share the result.
 */
export function createCachedSource({ minting, clock, closing }: InnerOptions): CachedSource {
  let state = states.COLD
  let inFlight: Promise<string> | undefined
  const dispatch = (event: states.TokenStateEvent): void => {
    state = states.advance(state, event)
  }

  async function renew(isForced: boolean): Promise<string> {
    dispatch({ type: 'requested', at: readClock(clock), isForced })
    const outcome = await toEvent(mint(minting, closing))
    dispatch({ ...outcome, at: readClock(clock), jitter: Math.random() })
    return states.renewedToken(state)
  }

  async function toEvent(minted: Promise<string>) {
    const { validitySeconds } = minting
    try {
      return { type: 'minted', token: await minted, validitySeconds } as const
    } catch (error) {
      if (error instanceof TokenSourceError) return { type: 'failed', error } as const
      throw error
    }
  }

  const renewal = AsyncResource.bind((isForced: boolean): Promise<string> => {
    inFlight ??= renew(isForced).finally(() => {
      inFlight = undefined
    })
    return inFlight
  })

  return {
    async token(after) {
      const answer = states.answerTo(state, after, readClock(clock))
      switch (answer.kind) {
        case 'failure':
          throw answer.error
        case 'token':
          // A failure is ignored: calls that need the new token wait for it or start a renewal.
          if (answer.isRenewalDue) renewal(false).catch(() => {})
          return answer.token
        case 'renewal':
          return renewal(answer.isForced).catch((error: unknown) => {
            if (answer.fallback === undefined || closing.aborted) throw error
            return answer.fallback
          })
      }
    },
    health: () => states.tokenHealth(state, readClock(clock)),
    current: () => state.current,
  }
}
