import { AsyncResource } from 'node:async_hooks'
import { readClock } from '../../base/clock.js'
import {
  announceKeySet,
  areKeysObserved,
  changesBetween,
  type KeySetChange,
} from '../../base/decision/key-set-event.js'
import { FetchFailure, parseDocument } from './fetch-key-set.js'
import { createFetcher, type Fetcher, type FetcherOptions } from './fetcher.js'
import type { FetchNumbers, SearchState } from './find-key-step.js'
import type { VerificationKey } from './key-set.js'
import * as lives from './key-set-state.js'

export interface RefresherOptions extends FetcherOptions {
  /** A JWKS document as JSON text. */
  readonly initial: string | undefined
  readonly lifespan: lives.Lifespan
}

/**
 * Keeps a set of keys up to date: one fetch at a time, when it is due or asked for. Fetches, timers and
 * events run in the async context in which it was made. In that of the request that causes them they
 * would keep its `AsyncLocalStorage` stores alive, and tracers would count them as part of it.
 */
export interface Refresher {
  /** The key with this id that may be used now. Starts a refresh that is due, and never waits for it. */
  current(kid: string): VerificationKey | undefined
  /** Starts a fetch, unless one is under way or the refresher is closed. */
  fetch(): void
  /** Settles with the fetch under way, and never rejects. */
  readonly flight: Promise<void> | undefined
  readonly fetches: FetchNumbers
  state(): SearchState
  close(): void
}

export function createRefresher(options: RefresherOptions): Refresher {
  const { clock } = options
  const fetcher = createFetcher(options)
  const wakeUp = createWakeUp(onWake)
  const fetches = { lastStarted: 0, lastSuccessful: 0, lastFailed: 0 }
  let life = startOfLife(fetcher, options)
  let flight: Promise<void> | undefined
  let isClosed = false

  const announce = AsyncResource.bind((change: KeySetChange): void =>
    announceKeySet(options.jwksUri, change),
  )

  function happen(event: lives.LifeEvent): void {
    const hadSet = life.held !== undefined
    life = lives.advance(life, event, options.lifespan)
    if (hadSet && life.held === undefined) announce({ type: 'expired' })
  }

  /** Reads the clock and expires a set that is too old. */
  function upToNow(): number {
    const at = readClock(clock)
    if (life.held !== undefined && at >= life.held.expiresAt) happen({ type: 'time_passed', at })
    return at
  }

  const fetch = AsyncResource.bind((): void => {
    if (isClosed || flight !== undefined) return
    flight = fetchOnce()
      // Only a clock that throws comes here: whoever waits for the flight reads that clock next.
      .catch(() => {})
      .then(() => {
        flight = undefined
        scheduleRefresh()
      })
  })

  async function fetchOnce(): Promise<void> {
    const number = ++fetches.lastStarted
    const before = life.held?.keys
    try {
      const result = await fetcher.fetch(life.held)
      happen({ ...result, at: readClock(clock) })
      fetches.lastSuccessful = number
      if (result.type === 'not_modified') announce({ type: 'not_modified' })
      else if (areKeysObserved()) {
        announce({ type: 'fetched', ...changesBetween(before, result.keys) })
      }
    } catch (error) {
      const failure = error instanceof FetchFailure ? error : new FetchFailure('network')
      const { code, systemCode, isNotFound } = failure
      const at = readClock(clock)
      happen({ type: 'failed', at, code, systemCode, isNotFound, jitter: Math.random() })
      fetches.lastFailed = number
      if (!isClosed) announce({ type: 'failed', reason: code })
    }
  }

  function scheduleRefresh(): void {
    const next = lives.nextFetchAt(life)
    if (isClosed || next === undefined) return
    wakeUp.in(() => next - readClock(clock))
  }

  function onWake(): void {
    if (lives.isRefreshDue(life, upToNow())) fetch()
    if (flight === undefined) scheduleRefresh()
  }

  scheduleRefresh()
  return {
    current(kid) {
      const now = upToNow()
      if (life.held !== undefined && lives.isRefreshDue(life, now)) fetch()
      return lives.usableLife(life, now, options.lifespan).held?.keys.get(kid)
    },
    fetch,
    get flight() {
      return flight
    },
    fetches,
    state() {
      const now = upToNow()
      return { life: lives.usableLife(life, now, options.lifespan), now, fetches, isClosed }
    },
    close() {
      isClosed = true
      wakeUp.cancel()
      fetcher.close()
    },
  }
}

function startOfLife(fetcher: Fetcher, options: RefresherOptions): lives.Life {
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

/** So that the timer does not fire in a loop while the clock stands still. */
const MIN_DELAY_MS = 20
/** The delay when the clock throws or returns no number. */
const BROKEN_CLOCK_DELAY_MS = 5000
/** The longest delay of Node's timers. */
const MAX_DELAY_MS = 2 ** 31 - 1

/** One timer that never holds the process open. */
interface WakeUp {
  /** Sets the timer, in place of an earlier one. */
  in(delayMs: () => number): void
  cancel(): void
}

export function createWakeUp(wake: () => void): WakeUp {
  let timer: NodeJS.Timeout | undefined
  const ring = (): void => {
    try {
      wake()
    } catch {
      wakeUp.in(() => BROKEN_CLOCK_DELAY_MS)
    }
  }
  const wakeUp: WakeUp = {
    in(delayMs) {
      clearTimeout(timer)
      timer = setTimeout(ring, Math.min(MAX_DELAY_MS, Math.max(MIN_DELAY_MS, safely(delayMs))))
      timer.unref()
    },
    cancel() {
      clearTimeout(timer)
    },
  }
  return wakeUp
}

function safely(delayMs: () => number): number {
  try {
    return delayMs()
  } catch {
    return BROKEN_CLOCK_DELAY_MS
  }
}
