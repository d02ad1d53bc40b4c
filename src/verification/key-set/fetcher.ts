import { setTimeout as sleep } from 'node:timers/promises'
import { announceKeySet } from '../../base/decision/key-set-event.js'
import { exchange, FetchFailure, type Validators } from './fetch-key-set.js'
import type { VerificationKey } from './key-set.js'
import type { FetchResult } from './key-set-state.js'
import { type SkippedKey, screenKeySet } from './usable-keys.js'

export interface FetcherOptions {
  readonly jwksUri: string
  readonly fetch: typeof globalThis.fetch
  readonly timeoutMs: number
  readonly clock: () => number
}

type Keys = ReadonlyMap<string, VerificationKey>

/** The state of the current set that a fetch needs. */
interface Held {
  readonly keys: Keys
  readonly validators: Validators | undefined
  readonly maxAgeSeconds: number | undefined
}

export interface Fetcher {
  /**
   * Fetches and screens the set; a failed attempt is repeated once.
   *
   * @throws FetchFailure
   */
  fetch(held: Held | undefined): Promise<FetchResult>
  /**
   * Returns the usable keys of a document.
   *
   * @throws FetchFailure when there are none.
   */
  screen(document: unknown, held?: Keys): Keys
  /** Aborts the fetch under way. */
  close(): void
}

/** The wait between the two attempts: random, so that receivers that failed together spread out. */
const RETRY_DELAY_MS = { least: 50, jitter: 100 }

export function createFetcher(options: FetcherOptions): Fetcher {
  const closing = new AbortController()
  const { signal } = closing
  const reportSkipped = createSkipReport(options.jwksUri)

  function screen(document: unknown, held?: Keys): Keys {
    const { keys, skipped } = screenKeySet(document, held)
    reportSkipped(skipped)
    if (keys.size === 0) throw new FetchFailure('no_usable_key')
    return keys
  }

  async function attempt(held: Held | undefined): Promise<FetchResult> {
    const request = { ...options, signal, validators: held?.validators }
    const result = await exchange({ ...request, earlierMaxAgeSeconds: held?.maxAgeSeconds })
    const { kind, freshness } = result
    if (kind === 'not_modified') return { type: 'not_modified', ...freshness }
    const keys = screen(result.document, held?.keys)
    return { type: 'fetched', keys, ...freshness, validators: result.validators }
  }

  return {
    screen,
    async fetch(held) {
      try {
        return await attempt(held)
      } catch (error) {
        if (signal.aborted) throw error
        const delayMs = RETRY_DELAY_MS.least + Math.random() * RETRY_DELAY_MS.jitter
        // This short wait, unlike all longer ones, keeps the process alive: a program that awaits only
        // `ready()` would otherwise end before it learns of the failure.
        await sleep(delayMs, undefined, { signal }).catch(() => {
          throw new FetchFailure('closed')
        })
        return await attempt(held)
      }
    },
    close() {
      closing.abort(new FetchFailure('closed'))
    },
  }
}

/** Reports a skipped key once, and again only after it was usable or absent in between. */
function createSkipReport(jwksUri: string): (skipped: readonly SkippedKey[]) => void {
  let told = new Set<string>()
  return (skipped) => {
    const now = new Map(skipped.map((key) => [`${key.reason} ${key.keyId ?? ''}`, key]))
    for (const [name, key] of now) {
      if (!told.has(name)) announceKeySet(jwksUri, { type: 'key_skipped', ...key })
    }
    told = new Set(now.keys())
  }
}
