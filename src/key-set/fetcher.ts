import { setTimeout as sleep } from 'node:timers/promises'
import { announceKeySet } from './event.js'
import { exchange, FetchFailure, type Validators } from './exchange.js'
import type { VerificationKey } from './key-set.js'
import type { FetchResult } from './life.js'
import { type SkippedKey, screenKeySet } from './screen.js'

export interface FetcherOptions {
  readonly jwksUri: string
  readonly fetch: typeof globalThis.fetch
  readonly timeoutMs: number
  readonly clock: () => number
}

type Keys = ReadonlyMap<string, VerificationKey>

/** What a fetch needs to know of the set that is held. */
interface Held {
  readonly keys: Keys
  readonly validators: Validators | undefined
  readonly maxAgeSeconds: number | undefined
}

export interface Fetcher {
  /**
   * Fetches and screens the set, trying twice.
   *
   * @throws FetchFailure
   */
  fetch(held: Held | undefined): Promise<FetchResult>
  /**
   * The usable keys of a document.
   *
   * @throws FetchFailure when there are none.
   */
  screen(document: unknown, held?: Keys): Keys
  /** Gives up the fetch under way. */
  close(): void
}

/** Between the two tries, so that receivers that failed together do not come back together. */
const RETRY_DELAY_MS = { least: 50, jitter: 100 }

export function createFetcher(options: FetcherOptions): Fetcher {
  const closing = new AbortController()
  const { signal } = closing
  const reportSkipped = createSkipReport()

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
        // Like the exchanges around it, and unlike every longer wait, it is not cut short by the end of
        // the process: a program that awaits `ready()` and nothing else has to learn of the failure.
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

/** Tells of a skipped key once for as long as it stays skipped, not at every fetch. */
function createSkipReport(): (skipped: readonly SkippedKey[]) => void {
  let told = new Set<string>()
  return (skipped) => {
    const now = new Map(skipped.map((key) => [`${key.reason} ${key.keyId ?? ''}`, key]))
    for (const [name, key] of now) {
      if (!told.has(name)) announceKeySet({ type: 'key_skipped', ...key })
    }
    told = new Set(now.keys())
  }
}
