import { AsyncResource } from 'node:async_hooks'
import { Unavailable } from '../decision/unavailable.js'
import { withoutQuery } from './address.js'
import { createRefetchBudget } from './budget.js'
import { announceKeySet } from './event.js'
import { reasonInWords } from './exchange.js'
import type { KeySet, KeySource } from './key-set.js'
import { healthOf } from './life.js'
import { createRefresher, type RefresherOptions } from './refresher.js'
import { nextSearchStep, type SearchState } from './search.js'

/** A key set behind one address, as users and as verification see it. */
export function createRemoteSource(options: RefresherOptions): KeySource & KeySet {
  const refresher = createRefresher(options)
  const tellExhausted = (): void => announceKeySet(options.jwksUri, { type: 'budget_exhausted' })
  const budget = createRefetchBudget(AsyncResource.bind(tellExhausted))

  return {
    current: refresher.current,
    async find(kid) {
      const startedBefore = refresher.fetches.lastStarted
      for (;;) {
        const key = refresher.current(kid)
        if (key !== undefined) return key
        if (refresher.flight === undefined) {
          const state = refresher.state()
          const step = nextSearchStep(state, startedBefore)
          if (step === 'absent') return undefined
          if (step === 'unavailable') throw unavailable(options.jwksUri, state)
          if (step === 'fetch_within_budget' && !budget.take(state.now)) return undefined
          refresher.fetch()
        }
        await refresher.flight
      }
    },
    async ready() {
      const { fetches } = refresher
      if (fetches.lastSuccessful === 0) refresher.fetch()
      await refresher.flight
      if (fetches.lastSuccessful === 0) throw unavailable(options.jwksUri, refresher.state())
    },
    health() {
      const { life, now } = refresher.state()
      return healthOf(life, now)
    },
    close: refresher.close,
  }
}

function unavailable(jwksUri: string, { life }: SearchState): Unavailable {
  const reason = life.trouble === undefined ? 'closed' : reasonInWords(life.trouble)
  return new Unavailable(
    'key_set',
    `the key set at ${withoutQuery(jwksUri)} could not be fetched (reason: ${reason})`,
  )
}
