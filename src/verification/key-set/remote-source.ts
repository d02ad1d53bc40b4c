import { AsyncResource } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { readClock } from '../../base/clock.js'
import {
  announceKeySet,
  type KeySetChange,
  withoutQuery,
} from '../../base/decision/key-set-event.js'
import { Unavailable } from '../../base/decision/service-auth-error.js'
import { FetchFailure, fetchKeySet, formatFailure, parseDocument } from './fetch-key-set.js'
import { type KeySet, type KeySource, NOT_LOOKED_UP, type VerificationKey } from './key-set.js'
import * as states from './key-set-state.js'
import { readKeySet, type SkippedKey } from './usable-keys.js'

interface RemoteSourceOptions {
  readonly jwksUri: string
  readonly fetch: typeof globalThis.fetch
  readonly timeoutMs: number
  readonly clock: () => number
  /** A JWKS document as JSON text. */
  readonly initial?: string | undefined
  readonly lifespan: states.Lifespan
}

type Keys = ReadonlyMap<string, VerificationKey>

/** The wait between the two attempts of a fetch: random, so that receivers that failed together spread out. */
const RETRY_DELAY_MS = { min: 50, jitter: 100 }

/** So that the timer does not fire in a loop while the clock stands still. */
const MIN_DELAY_MS = 20
/** The delay when the clock throws or returns no number. */
const BROKEN_CLOCK_DELAY_MS = 5000
/** The longest delay of Node's timers. */
const MAX_DELAY_MS = 2 ** 31 - 1

/**
 * A key set at one address, as users and as verification see it: one fetch at a time, when it is due or a request
 * needs it. Fetches, the timer and events run in the async context in which the source was made. In the context of the
 * request that causes them, they would keep the request's `AsyncLocalStorage` stores alive, and tracers would count
 * them as part of the request.
 */
export function createRemoteSource(options: RemoteSourceOptions): KeySource & KeySet {
  const { clock, jwksUri, lifespan } = options
  const closing = new AbortController()
  const { signal } = closing
  const announce = AsyncResource.bind((change: KeySetChange): void =>
    announceKeySet(jwksUri, change),
  )
  const reportSkipped = createSkipReport(announce)
  const budget = createRefetchBudget(() => announce({ type: 'budget_exhausted' }))
  let state = startState()
  let inFlight: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  /** Fetches are numbered in the order in which they start; 0 is none. */
  const fetches = { lastStarted: 0, lastSuccessful: 0, lastFailed: 0 }

  function startState(): states.KeySetState {
    if (options.initial === undefined) return states.COLD
    try {
      const keys = readKeys(parseDocument(Buffer.from(options.initial)))
      return states.initialState(keys, readClock(clock), lifespan)
    } catch (error) {
      if (error instanceof FetchFailure) return states.COLD
      throw error
    }
  }

  /** A key that is also in `current`, unchanged, keeps its object. */
  function readKeys(document: unknown, current?: Keys): Keys {
    const { keys, skipped } = readKeySet(document, current)
    reportSkipped(skipped)
    if (keys.size === 0) throw new FetchFailure('no_usable_key')
    return keys
  }

  function dispatch(event: states.KeySetStateEvent): void {
    const hadSet = state.current !== undefined
    state = states.advance(state, event, lifespan)
    if (hadSet && state.current === undefined) announce({ type: 'expired' })
  }

  /** Reads the clock and expires a set that is too old. */
  function upToNow(): number {
    const at = readClock(clock)
    if (state.current !== undefined && at >= state.current.expiresAt)
      dispatch({ type: 'time_passed', at })
    return at
  }

  const usableAt = (now: number): states.KeySetState => states.usableState(state, now, lifespan)

  async function attempt(): Promise<states.FetchResult> {
    const { current } = state
    const { validators, maxAgeSeconds } = current ?? {}
    const earlierMaxAgeSeconds = maxAgeSeconds
    const response = await fetchKeySet({ ...options, signal, validators, earlierMaxAgeSeconds })
    const { freshness } = response
    if (response.kind === 'not_modified') return { type: 'not_modified', ...freshness }
    const keys = readKeys(response.document, current?.keys)
    return { type: 'fetched', keys, ...freshness, validators: response.validators }
  }

  async function attemptTwice(): Promise<states.FetchResult> {
    try {
      return await attempt()
    } catch (error) {
      if (signal.aborted) throw error
      const delayMs = RETRY_DELAY_MS.min + Math.random() * RETRY_DELAY_MS.jitter
      // This short wait, unlike all longer ones, keeps the process alive: a program that awaits only
      // `ready()` would otherwise end before it learns of the failure.
      await sleep(delayMs, undefined, { signal })
      return await attempt()
    }
  }

  async function fetchOnce(): Promise<void> {
    const number = ++fetches.lastStarted
    const before = state.current?.keys
    try {
      const result = await attemptTwice()
      dispatch({ ...result, at: readClock(clock) })
      fetches.lastSuccessful = number
      if (result.type === 'not_modified') announce({ type: 'not_modified' })
      else announce({ type: 'fetched', ...changesBetween(before, result.keys) })
    } catch (error) {
      const failure = error instanceof FetchFailure ? error : new FetchFailure('network')
      const { systemCode, isNotFound } = failure
      const code = signal.aborted ? 'closed' : failure.code
      const at = readClock(clock)
      dispatch({ type: 'failed', at, code, systemCode, isNotFound, jitter: Math.random() })
      fetches.lastFailed = number
      if (!signal.aborted) announce({ type: 'failed', reason: code })
    }
  }

  /** Starts a fetch, unless one is in progress or the source is closed. */
  const fetch = AsyncResource.bind((): void => {
    if (signal.aborted || inFlight !== undefined) return
    inFlight = fetchOnce()
      // `fetchOnce` rejects only if the clock throws. Whoever waits reads the clock next, and gets its error.
      .catch(() => {})
      .then(() => {
        inFlight = undefined
        scheduleRefresh()
      })
  })

  /** A clock that gives no time is reported by the requests; the timer tries again. */
  function nowIfKnown(): number | undefined {
    try {
      return upToNow()
    } catch {
      return undefined
    }
  }

  function scheduleRefresh(): void {
    const dueAt = states.nextFetchAt(state)
    if (signal.aborted || dueAt === undefined) return
    const now = nowIfKnown()
    const delayMs = now === undefined ? BROKEN_CLOCK_DELAY_MS : Math.max(MIN_DELAY_MS, dueAt - now)
    clearTimeout(timer)
    timer = setTimeout(onTimer, Math.min(MAX_DELAY_MS, delayMs)).unref()
  }

  function onTimer(): void {
    const now = nowIfKnown()
    if (now !== undefined && states.isRefreshDue(state, now)) fetch()
    if (inFlight === undefined) scheduleRefresh()
  }

  /** The key at this time; starts a refresh that is due, and never waits for it. */
  function keyAt(now: number, kid: string): VerificationKey | undefined {
    if (state.current !== undefined && states.isRefreshDue(state, now)) fetch()
    return usableAt(now).current?.keys.get(kid)
  }

  function find(kid: string): ReturnType<KeySource['find']> {
    // Only a fetch that starts later answers whether the core publishes the key.
    const startedBefore = fetches.lastStarted
    const search = (): ReturnType<KeySource['find']> => {
      const now = upToNow()
      const key = keyAt(now, kid)
      if (key !== undefined) return key
      if (inFlight !== undefined) return inFlight.then(search)
      const hasSet = usableAt(now).current !== undefined
      const isClosed = signal.aborted
      if (hasSet && (isClosed || fetches.lastSuccessful > startedBefore)) return undefined
      const hasFailed = fetches.lastFailed > startedBefore || states.isBackingOff(state, now)
      if (isClosed || hasFailed) return Promise.reject(unavailable())
      // A fetch that is needed anyway, because there is no set, is not charged to the key id.
      if (hasSet && !budget.take(now)) return NOT_LOOKED_UP
      fetch()
      return Promise.resolve(inFlight).then(search)
    }
    return search()
  }

  function unavailable(): Unavailable {
    const { lastFailure } = state
    const reason = lastFailure === undefined ? 'closed' : formatFailure(lastFailure)
    const address = withoutQuery(jwksUri)
    const message = `the key set at ${address} could not be fetched (reason: ${reason})`
    return new Unavailable('key_set', message)
  }

  scheduleRefresh()
  return {
    current: (kid) => keyAt(upToNow(), kid),
    find,
    async ready() {
      if (fetches.lastSuccessful === 0) fetch()
      await inFlight
      if (fetches.lastSuccessful > 0) return
      // If the clock has made the fetch fail, its error says so.
      upToNow()
      throw unavailable()
    },
    health() {
      const now = upToNow()
      return states.keySetHealth(usableAt(now), now)
    },
    close() {
      closing.abort(new FetchFailure('closed'))
      clearTimeout(timer)
    },
  }
}

type Announce = (change: KeySetChange) => void

/** Reports a skipped key once, and again only after it was usable or absent in between. */
function createSkipReport(announce: Announce): (skipped: readonly SkippedKey[]) => void {
  let reported = new Set<string>()
  return (skipped) => {
    const current = new Map(skipped.map((key) => [`${key.reason} ${key.keyId ?? ''}`, key]))
    for (const [name, key] of current) {
      if (!reported.has(name)) announce({ type: 'key_skipped', ...key })
    }
    reported = new Set(current.keys())
  }
}

/** The key ids that a fetch has added, replaced and removed. A key that stays as it is keeps its object. */
function changesBetween(
  before: Keys = new Map(),
  after: Keys,
): Omit<Extract<KeySetChange, { type: 'fetched' }>, 'type'> {
  const ids = [...after.keys()]
  return {
    added: ids.filter((kid) => !before.has(kid)),
    replaced: ids.filter((kid) => before.has(kid) && before.get(kid) !== after.get(kid)),
    removed: [...before.keys()].filter((kid) => !after.has(kid)),
  }
}

const MAX_FETCHES = 2
/** Shorter than the waits of a caller's four attempts, each after the 5 s of `Retry-After`. */
const WINDOW_MS = 10_000

/**
 * The fetches that tokens with an unknown `kid` may cause: 2 in any 10 s, for the whole set. `take` returns whether
 * one more may start; if so, it counts. `onExhausted` is called at the first refusal after a fetch that was allowed.
 */
function createRefetchBudget(onExhausted: () => void): { take(now: number): boolean } {
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
