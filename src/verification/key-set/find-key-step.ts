import { isBackingOff, isRefreshDue, type KeySetState } from './key-set-state.js'

/** The fetches of a key set, numbered in the order in which they started; 0 is none. */
export interface FetchNumbers {
  readonly lastStarted: number
  readonly lastSuccessful: number
  readonly lastFailed: number
}

/** The state that a search for a key id depends on. */
export interface SearchState {
  readonly keySet: KeySetState
  /** Milliseconds of the key set's clock. */
  readonly now: number
  readonly fetches: FetchNumbers
  readonly isClosed: boolean
}

/**
 * The next step for a key id that the set lacks, while no fetch is in progress.
 *
 * - `absent`: the core does not publish the key.
 * - `unavailable`: it cannot be known whether the core publishes the key.
 * - `fetch`: a fetch is needed anyway, because there is no set or a refresh is due.
 * - `fetch_within_budget`: the fetch would be made for this key id alone.
 */
type SearchStep = 'absent' | 'unavailable' | 'fetch' | 'fetch_within_budget'

/** `startedBefore`: the number of the last fetch that started before the search. Only a later one answers it. */
export function nextSearchStep(state: SearchState, startedBefore: number): SearchStep {
  const { keySet, now, fetches, isClosed } = state
  const hasSet = keySet.current !== undefined
  if (hasSet && (isClosed || fetches.lastSuccessful > startedBefore)) return 'absent'
  const hasFailed = fetches.lastFailed > startedBefore || isBackingOff(keySet, now)
  if (isClosed || hasFailed) return 'unavailable'
  return hasSet && !isRefreshDue(keySet, now) ? 'fetch_within_budget' : 'fetch'
}
