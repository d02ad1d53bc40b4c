import { AsyncResource } from 'node:async_hooks'
import { announceKeySet, withoutQuery } from '../../base/decision/key-set-event.js'
import { Unavailable } from '../../base/decision/unavailable.js'
import { formatFailure } from './fetch-key-set.js'
import { nextSearchStep, type SearchState } from './find-key-step.js'
import type { KeySet, KeySource } from './key-set.js'
import { healthOf } from './key-set-state.js'
import { createRefresher, type RefresherOptions } from './refresher.js'

/** A key set at one address, as users and as verification see it. */
export function createRemoteSource(options: RefresherOptions): KeySource & KeySet {
  const refresher = createRefresher(options)
  const publishExhausted = (): void => announceKeySet(options.jwksUri, { type: 'budget_exhausted' })
  const budget = createRefetchBudget(AsyncResource.bind(publishExhausted))

  return {
    current: refresher.current,
    async find(kid) {
      const startedBefore = refresher.fetches.lastStarted
      for (;;) {
        const key = refresher.current(kid)
        if (key !== undefined) return key
        if (refresher.inFlight === undefined) {
          const state = refresher.state()
          const step = nextSearchStep(state, startedBefore)
          if (step === 'absent') return undefined
          if (step === 'unavailable') throw unavailable(options.jwksUri, state)
          if (step === 'fetch_within_budget' && !budget.take(state.now)) return undefined
          refresher.fetch()
        }
        await refresher.inFlight
      }
    },
    async ready() {
      const { fetches } = refresher
      if (fetches.lastSuccessful === 0) refresher.fetch()
      await refresher.inFlight
      if (fetches.lastSuccessful === 0) throw unavailable(options.jwksUri, refresher.state())
    },
    health() {
      const { keySet, now } = refresher.state()
      return healthOf(keySet, now)
    },
    close: refresher.close,
  }
}

function unavailable(jwksUri: string, { keySet }: SearchState): Unavailable {
  const reason = keySet.lastFailure === undefined ? 'closed' : formatFailure(keySet.lastFailure)
  return new Unavailable(
    'key_set',
    `the key set at ${withoutQuery(jwksUri)} could not be fetched (reason: ${reason})`,
  )
}

const MAX_FETCHES = 2
const WINDOW_MS = 30_000

/** The fetches that tokens with an unknown `kid` may cause: 2 in any 30 s, for the whole set. */
interface RefetchBudget {
  /** Whether one more fetch may start at `now`; if so, it counts. */
  take(now: number): boolean
}

/** `onExhausted` is called at the first refusal after a fetch that was allowed. */
export function createRefetchBudget(onExhausted: () => void): RefetchBudget {
  let taken: number[] = []
  let isExhausted = false
  return {
    take(now) {
      // The clock may have been set back: what was taken in the future must not count forever.
      taken = taken.filter((moment) => moment <= now && now - moment < WINDOW_MS)
      const isRefused = taken.length >= MAX_FETCHES
      if (isRefused && !isExhausted) onExhausted()
      isExhausted = isRefused
      if (!isRefused) taken.push(now)
      return !isRefused
    },
  }
}
