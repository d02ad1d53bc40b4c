import { LRUCache } from 'lru-cache'
import type { Decision, Denial } from '../../base/decision/reason.js'
import { MAX_TOKEN_LENGTH } from '../../base/raw-headers.js'
import { hash } from '../../base/supported-node.js'

interface Options<T> {
  /** How many accepted tokens are cached; 0 for none. */
  readonly max: number
  /** Whether an earlier decision to accept is still correct. */
  isStillValid(accepted: T): boolean
}

type Accepted<T> = Extract<Decision<T>, { readonly ok: true }>

/** An acceptance, or a denial of a more specific type. */
type TokenDecision<T, D extends Denial> = Accepted<T> | D

/** Counters of the cache of verified tokens since it was created. JSON-serialisable. */
export interface TokenCacheHealth {
  /** How many tokens are remembered, of at most `max`. */
  readonly entries: number
  /** `tokenCache.max` of the policy. */
  readonly max: number
  /** How many requests brought a token that was remembered. */
  readonly hits: number
  /** How many requests brought a token that had to be verified. */
  readonly misses: number
}

interface AcceptedTokens<T, D extends Denial = Denial> {
  /** The decision on a token that was accepted earlier, if it is still correct. */
  find(digest: string): Accepted<T> | undefined
  /** Decides on a token that was not found. Equal tokens that arrive together share one decision. */
  decide(
    token: string,
    digest: string,
    verify: () => D | Promise<TokenDecision<T, D>>,
  ): D | Promise<TokenDecision<T, D>>
  health(): TokenCacheHealth
}

/** Room for one entry, which takes about as many bytes as its token has. Most tokens are shorter. */
const BYTES_PER_ENTRY = 1024

/** Caches accepted tokens by digest. Refusals are not cached, because anyone could fill the memory with them. */
export function createAcceptedTokens<T extends object, D extends Denial = Denial>({
  max,
  isStillValid,
}: Options<T>): AcceptedTokens<T, D> {
  const maxSize = Math.max(MAX_TOKEN_LENGTH, max * BYTES_PER_ENTRY)
  const cache = max === 0 ? undefined : new LRUCache<string, Accepted<T>>({ max, maxSize })
  const inFlight = new Map<string, Promise<TokenDecision<T, D>>>()
  let hits = 0
  let misses = 0

  return {
    find(digest) {
      const cached = cache?.get(digest)
      if (cached === undefined) return undefined
      if (isStillValid(cached.value)) {
        hits += 1
        return cached
      }
      cache?.delete(digest)
      return undefined
    },
    decide(token, digest, verify) {
      misses += 1
      const pending = inFlight.get(digest)
      if (pending !== undefined) return pending
      const decision = verify()
      if ('ok' in decision) return decision
      inFlight.set(digest, decision)
      const settle = (settled?: TokenDecision<T, D>): void => {
        inFlight.delete(digest)
        if (settled?.ok) cache?.set(digest, settled, { size: token.length })
      }
      decision.then(settle, () => settle())
      return decision
    },
    health: () => ({ entries: cache?.size ?? 0, max, hits, misses }),
  }
}

export const digestToken = (token: string): string => hash('sha256', token, 'binary')
