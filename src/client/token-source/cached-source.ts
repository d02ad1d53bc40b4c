import { AsyncResource } from 'node:async_hooks'
import { readClock } from '../../base/clock.js'
import { type Minting, mint } from './mint.js'
import { TokenSourceError } from './token-source-error.js'
import type { TokenSourceHealth } from './token-source-health.js'
import * as lives from './token-state.js'

/** What gives tokens behind a `tokenSource`. */
export interface InnerSource {
  token(after: string | undefined): Promise<string>
  health(): TokenSourceHealth
}

export interface InnerOptions {
  readonly minting: Minting
  readonly clock: () => number
  /** Aborts, with the error that calls get, when the source is closed. */
  readonly closing: AbortSignal
}

/**
 * Holds one token and renews it when a call finds that due: one request at a time, without timers.
 * Requests run in the async context in which the source was made, since their result is for all calls.
 */
export function createHeldSource({ minting, clock, closing }: InnerOptions): InnerSource {
  let life = lives.COLD
  let flight: Promise<string> | undefined
  const happen = (event: lives.LifeEvent): void => {
    life = lives.advance(life, event)
  }

  async function renew(isForced: boolean): Promise<string> {
    happen({ type: 'asked', at: readClock(clock), isForced })
    const outcome = await outcomeOf(mint(minting, closing))
    happen({ ...outcome, at: readClock(clock), jitter: Math.random() })
    return lives.tokenOf(life)
  }

  async function outcomeOf(minted: Promise<string>) {
    const { validitySeconds } = minting
    try {
      return { type: 'minted', token: await minted, validitySeconds } as const
    } catch (error) {
      if (error instanceof TokenSourceError) return { type: 'failed', error } as const
      throw error
    }
  }

  const renewal = AsyncResource.bind((isForced: boolean): Promise<string> => {
    flight ??= renew(isForced).finally(() => {
      flight = undefined
    })
    return flight
  })

  return {
    async token(after) {
      const answer = lives.answerTo(life, after, readClock(clock))
      switch (answer.kind) {
        case 'failure':
          throw answer.error
        case 'token':
          // Calls that need what it brings wait for it, or ask again.
          if (answer.isRenewalDue) renewal(false).catch(() => {})
          return answer.token
        case 'renewal':
          return renewal(answer.isForced).catch((error: unknown) => {
            if (answer.instead === undefined || closing.aborted) throw error
            return answer.instead
          })
      }
    },
    health: () => lives.healthOf(life, readClock(clock)),
  }
}
