import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'

/** Tokens that have been accepted, by digest; the tokens themselves are not kept. */
export interface TokenCache<T extends object> {
  get(digest: string): T | undefined
  set(digest: string, accepted: T, tokenLength: number): void
  delete(digest: string): void
  /** How many entries it holds. */
  readonly size: number
}

/** An entry takes about as much memory as its token is long; a usual one is below this. */
const BYTES_PER_ENTRY = 1024
const LONGEST_TOKEN = 8192

/** At most `max` entries, and `max` KiB of tokens; `max` of 0 remembers nothing. */
export function createTokenCache<T extends object>(max: number): TokenCache<T> {
  if (max === 0) return { get: () => undefined, set: () => {}, delete: () => {}, size: 0 }
  const maxSize = Math.max(LONGEST_TOKEN, max * BYTES_PER_ENTRY)
  const entries = new LRUCache<string, T>({ max, maxSize })
  return {
    get: (digest) => entries.get(digest),
    set(digest, accepted, tokenLength) {
      entries.set(digest, accepted, { size: tokenLength })
    },
    delete(digest) {
      entries.delete(digest)
    },
    get size() {
      return entries.size
    },
  }
}

export const digestOf = (token: string): string => hash('sha256', token, 'binary')
