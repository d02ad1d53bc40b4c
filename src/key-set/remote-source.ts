import { readClock } from '../base/clock.js'
import { Unavailable } from '../decision/unavailable.js'
import { createRefetchBudget } from './budget.js'
import { announceKeySet, changesBetween } from './event.js'
import { FetchFailure, parseDocument } from './exchange.js'
import { createFetcher, type Fetcher, type FetcherOptions } from './fetcher.js'
import type { KeySet, KeySource } from './key-set.js'
import * as lives from './life.js'
import { createWakeUp } from './wake-up.js'

export interface RemoteSourceOptions extends FetcherOptions {
  /** A JWKS document as JSON text. */
  readonly initial: string | undefined
  readonly lifespan: lives.Lifespan
}

/** The shell around the life of a key set: the clock, one fetch at a time, and who waits for it. */
export function createRemoteSource(options: RemoteSourceOptions): KeySource & KeySet {
  const fetcher = createFetcher(options)
  const budget = createRefetchBudget()
  const wakeUp = createWakeUp(onWake)
  // Without its query, which may hold a secret.
  const [address] = options.jwksUri.split(/[?#]/, 1)
  let life = startOfLife(fetcher, options)
  let flight: Promise<void> | undefined
  let fetchesStarted = 0
  let lastGoodFetch = 0
  let lastFailedFetch = 0
  let exhausted = false
  let closed = false

  function happen(event: lives.LifeEvent): void {
    const hadSet = life.held !== undefined
    life = lives.advance(life, event, options.lifespan)
    if (hadSet && life.held === undefined) announceKeySet({ type: 'expired' })
  }

  /** Reads the clock and lets a set whose time is over expire. */
  function upToNow(): number {
    const at = readClock(options.clock)
    if (life.held !== undefined && at >= life.held.expiresAt) happen({ type: 'time_passed', at })
    return at
  }

  function takeOff(): void {
    // A clock that throws leaves the life as it is; the requests that wait meet the same clock.
    flight = fetchOnce()
      .catch(() => {})
      .then(() => {
        flight = undefined
        scheduleRefresh()
      })
  }

  async function fetchOnce(): Promise<void> {
    const number = ++fetchesStarted
    const before = life.held?.keys
    try {
      const result = await fetcher.fetch(life.held)
      happen({ ...result, at: readClock(options.clock) })
      lastGoodFetch = number
      announceKeySet(
        result.type === 'fetched'
          ? { type: 'fetched', ...changesBetween(before, result.keys) }
          : { type: 'not_modified' },
      )
    } catch (error) {
      const code = error instanceof FetchFailure ? error.code : 'network'
      happen({ type: 'failed', at: readClock(options.clock), code, jitter: Math.random() })
      lastFailedFetch = number
      if (!closed) announceKeySet({ type: 'failed', reason: code })
    }
  }

  function scheduleRefresh(): void {
    const next = lives.nextFetchAt(life)
    if (closed || next === undefined) return
    wakeUp.in(() => next - readClock(options.clock))
  }

  function refreshWhereDue(now: number): void {
    if (!closed && flight === undefined && lives.isRefreshDue(life, now)) takeOff()
  }

  function onWake(): void {
    refreshWhereDue(upToNow())
    if (flight === undefined) scheduleRefresh()
  }

  const unavailable = (): Unavailable =>
    new Unavailable(
      'key_set',
      `no usable key set from ${address}: ${life.trouble?.code ?? 'closed'}`,
    )

  /** The rules for a key id that the set does not hold; says whether the search goes on. */
  function startSearch(lastFetchOnArrival: number): boolean {
    const now = upToNow()
    const usable = life.held !== undefined
    if (usable && (closed || lastGoodFetch > lastFetchOnArrival)) return false
    if (closed || lastFailedFetch > lastFetchOnArrival) throw unavailable()
    if (lives.isBackingOff(life, now)) throw unavailable()
    // A refresh that is due anyway, after a failure too, is at nobody's expense.
    if (usable && !lives.isRefreshDue(life, now) && !budget.take(now)) {
      if (!exhausted) announceKeySet({ type: 'budget_exhausted' })
      exhausted = true
      return false
    }
    exhausted = false
    takeOff()
    return true
  }

  const source: KeySource & KeySet = {
    current(kid) {
      const now = upToNow()
      if (life.held !== undefined) refreshWhereDue(now)
      return life.held?.keys.get(kid)
    },
    async find(kid) {
      const lastFetchOnArrival = fetchesStarted
      for (;;) {
        const key = source.current(kid)
        if (key !== undefined) return key
        if (flight === undefined && !startSearch(lastFetchOnArrival)) return undefined
        await flight
      }
    },
    async ready() {
      if (lastGoodFetch === 0 && !closed && flight === undefined) takeOff()
      await flight
      if (lastGoodFetch === 0) throw unavailable()
    },
    health() {
      const now = upToNow()
      return lives.healthOf(life, now)
    },
    close() {
      closed = true
      wakeUp.cancel()
      fetcher.close()
    },
  }

  scheduleRefresh()
  return source
}

function startOfLife(fetcher: Fetcher, options: RemoteSourceOptions): lives.Life {
  const { initial, clock, lifespan } = options
  if (initial === undefined) return lives.COLD
  try {
    const keys = fetcher.screen(parseDocument(Buffer.from(initial)))
    return lives.suppliedLife(keys, readClock(clock), lifespan)
  } catch (error) {
    if (error instanceof FetchFailure) return lives.COLD
    throw error
  }
}
