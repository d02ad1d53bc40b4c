import { describe, expect, it } from 'vitest'
import {
  advance,
  COLD,
  type FetchNumbers,
  type KeySetState,
  nextSearchStep,
  type SearchState,
} from '../../../src/verification/key-set/key-set-state.js'

const SPAN = {
  refreshSeconds: 300,
  maxStaleSeconds: 3600,
  staleIfErrorSeconds: 0,
  fetchSeconds: 7,
}
const NONE = { lastStarted: 0, lastSuccessful: 0, lastFailed: 0 }
const fetched = { type: 'fetched', at: 0, keys: new Map(), validators: undefined } as const
const current = advance(
  COLD,
  { ...fetched, leftSeconds: undefined, maxAgeSeconds: undefined },
  SPAN,
)
const failed = (state: KeySetState): KeySetState =>
  advance(state, { type: 'failed', at: 0, code: 'network', jitter: 0 }, SPAN)

const search = (keySet: KeySetState, changes: Partial<SearchState> = {}): SearchState => ({
  keySet,
  now: 0,
  fetches: NONE,
  isClosed: false,
  ...changes,
})

/** Of a search that came while or after the second fetch was made. */
const since = (numbers: Partial<FetchNumbers>): { fetches: FetchNumbers } => ({
  fetches: { lastStarted: 2, lastSuccessful: 1, lastFailed: 0, ...numbers },
})

describe('a search for a key id that the set does not hold', () => {
  it('fetches within the budget while the set is fresh', () => {
    expect(nextSearchStep(search(current, since({ lastSuccessful: 2 })), 2)).toBe(
      'fetch_within_budget',
    )
  })

  it('fetches beside the budget when there is no set, or a refresh is due', () => {
    expect(nextSearchStep(search(COLD), 0)).toBe('fetch')
    expect(nextSearchStep(search(current, { now: 300_000 }), 0)).toBe('fetch')
    expect(nextSearchStep(search(failed(current), { now: 1000 }), 0)).toBe('fetch')
  })

  it('ends without the key after a fetch that started later than the search', () => {
    expect(nextSearchStep(search(current, since({ lastSuccessful: 3 })), 2)).toBe('absent')
  })

  it('cannot be answered after a failure that started later, or while a back-off runs', () => {
    const failure = since({ lastFailed: 3 })
    expect(nextSearchStep(search(failed(current), { ...failure, now: 1000 }), 2)).toBe(
      'unavailable',
    )
    expect(nextSearchStep(search(failed(current), { now: 499 }), 2)).toBe('unavailable')
    expect(nextSearchStep(search(failed(COLD), { now: 499 }), 2)).toBe('unavailable')
  })

  it('is answered by the set that is current once the key set is closed, and cannot be without one', () => {
    expect(nextSearchStep(search(current, { isClosed: true }), 0)).toBe('absent')
    expect(nextSearchStep(search(COLD, { isClosed: true }), 0)).toBe('unavailable')
  })
})
