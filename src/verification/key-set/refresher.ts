import { AsyncResource } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { readClock } from '../../base/clock.js'
import {
  announceKeySet,
  areKeysObserved,
  type KeySetChange,
} from '../../base/decision/key-set-event.js'
import { FetchFailure, fetchKeySet, parseDocument, type Validators } from './fetch-key-set.js'
import type { VerificationKey } from './key-set.js'
import type { FetchNumbers, FetchResult, SearchState } from './key-set-state.js'
import * as states from './key-set-state.js'
import { readKeySet, type SkippedKey } from './usable-keys.js'

export interface RefresherOptions extends FetcherOptions {
  /** A JWKS document as JSON text. */
  readonly initial: string | undefined
  readonly lifespan: states.Lifespan
}

/**
 * Keeps a set of keys up to date: one fetch at a time, when it is due or asked for. Fetches, timers and
 * events run in the async context in which the refresher was made. In the context of the request that causes them,
 * they would keep the request's `AsyncLocalStorage` stores alive, and tracers would count them as part of the request.
 */
interface Refresher {
  /** The key with this id that may be used now. Starts a refresh that is due, and never waits for it. */
  current(kid: string): VerificationKey | undefined
  /** Starts a fetch, unless one is in progress or the refresher is closed. */
  fetch(): void
  /** Resolves when the fetch in progress ends, and never rejects; `undefined` if there is none. */
  readonly inFlight: Promise<void> | undefined
  readonly fetches: FetchNumbers
  state(): SearchState
  close(): void
}

export function createRefresher(options: RefresherOptions): Refresher {
  const { clock } = options
  const fetcher = createFetcher(options)
  const timer = createTimer(onTimer)
  const fetches = { lastStarted: 0, lastSuccessful: 0, lastFailed: 0 }
  let state = startState(fetcher, options)
  let inFlight: Promise<void> | undefined
  let isClosed = false

  const announce = AsyncResource.bind((change: KeySetChange): void =>
    announceKeySet(options.jwksUri, change),
  )

  function dispatch(event: states.KeySetStateEvent): void {
    const hadSet = state.current !== undefined
    state = states.advance(state, event, options.lifespan)
    if (hadSet && state.current === undefined) announce({ type: 'expired' })
  }

  /** Reads the clock and expires a set that is too old. */
  function upToNow(): number {
    const at = readClock(clock)
    if (state.current !== undefined && at >= state.current.expiresAt)
      dispatch({ type: 'time_passed', at })
    return at
  }

  const fetch = AsyncResource.bind((): void => {
    if (isClosed || inFlight !== undefined) return
    inFlight = fetchOnce()
      // `fetchOnce` rejects only if the clock throws. Whoever waits reads the clock next, and gets its error.
      .catch(() => {})
      .then(() => {
        inFlight = undefined
        scheduleRefresh()
      })
  })

  async function fetchOnce(): Promise<void> {
    const number = ++fetches.lastStarted
    const before = state.current?.keys
    try {
      const result = await fetcher.fetch(state.current)
      dispatch({ ...result, at: readClock(clock) })
      fetches.lastSuccessful = number
      if (result.type === 'not_modified') announce({ type: 'not_modified' })
      else if (areKeysObserved()) {
        announce({ type: 'fetched', ...changesBetween(before, result.keys) })
      }
    } catch (error) {
      const failure = error instanceof FetchFailure ? error : new FetchFailure('network')
      const { code, systemCode, isNotFound } = failure
      const at = readClock(clock)
      dispatch({ type: 'failed', at, code, systemCode, isNotFound, jitter: Math.random() })
      fetches.lastFailed = number
      if (!isClosed) announce({ type: 'failed', reason: code })
    }
  }

  function scheduleRefresh(): void {
    const next = states.nextFetchAt(state)
    if (isClosed || next === undefined) return
    timer.in(() => next - readClock(clock))
  }

  function onTimer(): void {
    if (states.isRefreshDue(state, upToNow())) fetch()
    if (inFlight === undefined) scheduleRefresh()
  }

  scheduleRefresh()
  return {
    current(kid) {
      const now = upToNow()
      if (state.current !== undefined && states.isRefreshDue(state, now)) fetch()
      return states.usableState(state, now, options.lifespan).current?.keys.get(kid)
    },
    fetch,
    get inFlight() {
      return inFlight
    },
    fetches,
    state() {
      const now = upToNow()
      return { keySet: states.usableState(state, now, options.lifespan), now, fetches, isClosed }
    },
    close() {
      isClosed = true
      timer.cancel()
      fetcher.close()
    },
  }
}

function startState(fetcher: Fetcher, options: RefresherOptions): states.KeySetState {
  const { initial, clock, lifespan } = options
  if (initial === undefined) return states.COLD
  try {
    const keys = fetcher.readKeys(parseDocument(Buffer.from(initial)))
    return states.initialState(keys, readClock(clock), lifespan)
  } catch (error) {
    if (error instanceof FetchFailure) return states.COLD
    throw error
  }
}

/** So that the timer does not fire in a loop while the clock stands still. */
const MIN_DELAY_MS = 20
/** The delay when the clock throws or returns no number. */
const BROKEN_CLOCK_DELAY_MS = 5000
/** The longest delay of Node's timers. */
const MAX_DELAY_MS = 2 ** 31 - 1

/** One timer that never holds the process open. */
interface Timer {
  /** Sets the timer, in place of an earlier one. */
  in(delayMs: () => number): void
  cancel(): void
}

function createTimer(work: () => void): Timer {
  let timeout: NodeJS.Timeout | undefined
  const fire = (): void => {
    try {
      work()
    } catch {
      timer.in(() => BROKEN_CLOCK_DELAY_MS)
    }
  }
  const timer: Timer = {
    in(delayMs) {
      clearTimeout(timeout)
      timeout = setTimeout(fire, Math.min(MAX_DELAY_MS, Math.max(MIN_DELAY_MS, safely(delayMs))))
      timeout.unref()
    },
    cancel() {
      clearTimeout(timeout)
    },
  }
  return timer
}

function safely(delayMs: () => number): number {
  try {
    return delayMs()
  } catch {
    return BROKEN_CLOCK_DELAY_MS
  }
}

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

/** The key ids that a fetch has added, replaced and removed. A key that stays as it is keeps its object. */
function changesBetween(
  before: ReadonlyMap<string, object> | undefined,
  after: ReadonlyMap<string, object>,
): Omit<Extract<KeySetChange, { type: 'fetched' }>, 'type'> {
  const earlier = before ?? new Map<string, object>()
  const ids = [...after.keys()]
  return {
    added: ids.filter((kid) => !earlier.has(kid)),
    replaced: ids.filter((kid) => earlier.has(kid) && earlier.get(kid) !== after.get(kid)),
    removed: [...earlier.keys()].filter((kid) => !after.has(kid)),
  }
}
