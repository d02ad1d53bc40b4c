import { setTimeout as sleep } from 'node:timers/promises'
import { announceKeySet } from '../../base/decision/key-set-event.js'
import { FetchFailure, fetchKeySet, type Validators } from './fetch-key-set.js'
import type { VerificationKey } from './key-set.js'
import type { FetchResult } from './key-set-state.js'
import { readKeySet, type SkippedKey } from './usable-keys.js'

export interface FetcherOptions {
  readonly jwksUri: string
  readonly fetch: typeof globalThis.fetch
  readonly timeoutMs: number
  readonly clock: () => number
}

type Keys = ReadonlyMap<string, VerificationKey>

/** The state of the current set that a fetch needs. */
interface CurrentSet {
  readonly keys: Keys
  readonly validators: Validators | undefined
  readonly maxAgeSeconds: number | undefined
}

export interface Fetcher {
  /**
   * Fetches the set and reads its usable keys; a failed attempt is repeated once.
   *
   * @throws FetchFailure
   */
  fetch(current: CurrentSet | undefined): Promise<FetchResult>
  /**
   * Returns the usable keys of a document.
   *
   * @throws FetchFailure if there are none.
   */
  readKeys(document: unknown, current?: Keys): Keys
  /** Aborts the fetch in progress. */
  close(): void
}

/** The wait between the two attempts: random, so that receivers that failed together spread out. */
const RETRY_DELAY_MS = { min: 50, jitter: 100 }

export function createFetcher(options: FetcherOptions): Fetcher {
  const controller = new AbortController()
  const { signal } = controller
  const reportSkipped = createSkipReport(options.jwksUri)

  /** A key that is also in `current`, unchanged, keeps its object. */
  function readKeys(document: unknown, current?: Keys): Keys {
    const { keys, skipped } = readKeySet(document, current)
    reportSkipped(skipped)
    if (keys.size === 0) throw new FetchFailure('no_usable_key')
    return keys
  }

  async function attempt(current: CurrentSet | undefined): Promise<FetchResult> {
    const request = { ...options, signal, validators: current?.validators }
    const result = await fetchKeySet({ ...request, earlierMaxAgeSeconds: current?.maxAgeSeconds })
    const { kind, freshness } = result
    if (kind === 'not_modified') return { type: 'not_modified', ...freshness }
    const keys = readKeys(result.document, current?.keys)
    return { type: 'fetched', keys, ...freshness, validators: result.validators }
  }

  return {
    readKeys,
    async fetch(current) {
      try {
        return await attempt(current)
      } catch (error) {
        if (signal.aborted) throw error
        const delayMs = RETRY_DELAY_MS.min + Math.random() * RETRY_DELAY_MS.jitter
        // This short wait, unlike all longer ones, keeps the process alive: a program that awaits only
        // `ready()` would otherwise end before it learns of the failure.
        await sleep(delayMs, undefined, { signal }).catch(() => {
          throw new FetchFailure('closed')
        })
        return await attempt(current)
      }
    },
    close() {
      controller.abort(new FetchFailure('closed'))
    },
  }
}

/** Reports a skipped key once, and again only after it was usable or absent in between. */
function createSkipReport(jwksUri: string): (skipped: readonly SkippedKey[]) => void {
  let reported = new Set<string>()
  return (skipped) => {
    const current = new Map(skipped.map((key) => [`${key.reason} ${key.keyId ?? ''}`, key]))
    for (const [name, key] of current) {
      if (!reported.has(name)) announceKeySet(jwksUri, { type: 'key_skipped', ...key })
    }
    reported = new Set(current.keys())
  }
}
