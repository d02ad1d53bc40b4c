import type { Decision } from '../decision/reason.js'
import { createTokenCache, digestOf } from './token-cache.js'

interface Options<T> {
  /** How many accepted tokens are remembered; 0 for none. */
  readonly max: number
  decide(token: string): Promise<Decision<T>>
  /** Whether what was decided earlier still holds. */
  holds(accepted: T): boolean
}

type Accepted<T> = Extract<Decision<T>, { readonly ok: true }>

/**
 * Remembers which tokens were accepted, and lets equal tokens that arrive together share one
 * decision. Refusals are not remembered: anybody could fill the memory with them.
 */
export function rememberAccepted<T extends object>({
  max,
  decide,
  holds,
}: Options<T>): (token: string) => Decision<T> | Promise<Decision<T>> {
  const cache = createTokenCache<Accepted<T>>(max)
  const flights = new Map<string, Promise<Decision<T>>>()

  async function decideOnce(token: string, digest: string): Promise<Decision<T>> {
    try {
      const decision = await decide(token)
      if (decision.ok) cache.set(digest, decision, token.length)
      return decision
    } finally {
      flights.delete(digest)
    }
  }

  return (token) => {
    const digest = digestOf(token)
    const known = cache.get(digest)
    if (known !== undefined) {
      if (holds(known.value)) return known
      cache.delete(digest)
    }
    const underWay = flights.get(digest)
    if (underWay !== undefined) return underWay
    const flight = decideOnce(token, digest)
    flights.set(digest, flight)
    return flight
  }
}
