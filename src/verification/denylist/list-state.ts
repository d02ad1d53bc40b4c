import type { DenylistEvent, DenylistFailureCode } from '../../base/decision/store-event.js'
import type { DenylistHealth } from './live-denylist.js'
import {
  type ListVersion,
  type LocalEntries,
  merge,
  NO_ENTRIES,
  nextEndOf,
  type ReadList,
  withoutEnded,
} from './merge-entries.js'

type DenylistState = DenylistHealth['state']

/** The state of a live denylist, as an immutable value. */
export interface ListState {
  readonly local: LocalEntries
  /** When the next entry ends, in seconds of the server's clock. */
  readonly nextEndAt: number
  readonly version: ListVersion
  /** The highest number ever read. Receivers report it, because only a higher one can end a local entry. */
  readonly highestNumber: number
  /** When the last call that confirmed the list was sent. */
  readonly confirmedAt: ClockReading | undefined
  /** Why the last attempt failed. */
  readonly lastFailure: DenylistFailureCode | undefined
  /** The state at the last event. */
  readonly freshness: DenylistState
}

/** An event of a live denylist. */
export type ListEvent = { readonly at: ClockReading } & (
  | {
      readonly type: 'unchanged'
      readonly requestedAt: ClockReading
      readonly serverSeconds: number
    }
  | { readonly type: 'read'; readonly requestedAt: ClockReading; readonly list: ReadList }
  | { readonly type: 'failed'; readonly code: DenylistFailureCode }
  /** Time has passed without an attempt that ended. */
  | { readonly type: 'aged' }
)

/** Six polls in a row have failed by then. */
const FRESH_MS = 1500

/** The version of a list that was never written. */
export const NO_VERSION: ListVersion = { number: 0, nonce: '' }

export const INITIAL_STATE: ListState = {
  local: NO_ENTRIES,
  nextEndAt: Number.POSITIVE_INFINITY,
  version: NO_VERSION,
  highestNumber: 0,
  confirmedAt: undefined,
  lastFailure: undefined,
  freshness: 'cold',
}

/** The state after an event. Entries expire only here, by the server's time. */
export function advance(state: ListState, event: ListEvent, maxStaleSeconds: number): ListState {
  const after = applied(state, event)
  return { ...after, freshness: freshnessAt(after, event.at, maxStaleSeconds) }
}

function applied(state: ListState, event: ListEvent): ListState {
  switch (event.type) {
    case 'failed':
      return { ...state, lastFailure: event.code }
    case 'aged':
      return state
    case 'unchanged': {
      const confirmed = { ...state, confirmedAt: event.requestedAt, lastFailure: undefined }
      if (event.serverSeconds < state.nextEndAt) return confirmed
      return { ...confirmed, ...withLocal(withoutEnded(state.local, event.serverSeconds)) }
    }
    case 'read': {
      const { requestedAt, list } = event
      return {
        ...state,
        ...withLocal(merge(state.local, list)),
        version: list.version,
        highestNumber: highestOf(state, list),
        confirmedAt: requestedAt,
        lastFailure: undefined,
      }
    }
  }
}

const withLocal = (local: LocalEntries): Pick<ListState, 'local' | 'nextEndAt'> => ({
  local,
  nextEndAt: nextEndOf(local),
})

function highestOf({ highestNumber }: ListState, { version, entries }: ReadList): number {
  let highest = Math.max(highestNumber, version.number)
  for (const { number } of entries.values()) highest = Math.max(highest, number)
  return highest
}

export const isSameVersion = (one: ListVersion, other: ListVersion): boolean =>
  one.number === other.number && one.nonce === other.nonce

export function freshnessAt(
  { confirmedAt }: Pick<ListState, 'confirmedAt'>,
  now: ClockReading,
  maxStaleSeconds: number,
): DenylistState {
  if (confirmedAt === undefined) return 'cold'
  const ageMs = elapsedMs(confirmedAt, now)
  if (ageMs > maxStaleSeconds * 1000) return 'expired'
  return ageMs >= FRESH_MS ? 'stale' : 'fresh'
}

/** Milliseconds since the epoch until which the list is known, unless the wall clock is set back. */
export function knownUntil(
  { confirmedAt }: Pick<ListState, 'confirmedAt'>,
  now: ClockReading,
  maxStaleSeconds: number,
): number {
  if (confirmedAt === undefined) return Number.NEGATIVE_INFINITY
  return now.wallMs + maxStaleSeconds * 1000 - elapsedMs(confirmedAt, now)
}

export function listHealth(
  state: ListState,
  now: ClockReading,
  maxStaleSeconds: number,
): DenylistHealth {
  const { local, version, confirmedAt, lastFailure } = state
  return {
    state: freshnessAt(state, now, maxStaleSeconds),
    entries: local.entries.size,
    version: version.number,
    ...(confirmedAt !== undefined && { ageSeconds: elapsedMs(confirmedAt, now) / 1000 }),
    ...(local.retained.size > 0 && { regressed: true }),
    ...(lastFailure !== undefined && { lastError: lastFailure }),
  }
}

/** The events of a transition from one state to the next. */
export function eventsBetween(before: ListState, after: ListState): readonly DenylistEvent[] {
  return [...listEvents(before, after), ...freshnessEvents(before, after)]
}

function* listEvents(before: ListState, after: ListState): Generator<DenylistEvent> {
  if (!isSameVersion(before.version, after.version)) {
    const added = countMissing(after.local, before.local)
    const removed = countMissing(before.local, after.local)
    yield { type: 'changed', version: after.version.number, added, removed }
  }
  const kept = after.local.retained.size
  if (kept > before.local.retained.size) yield { type: 'regressed', kept }
}

function countMissing({ entries }: LocalEntries, other: LocalEntries): number {
  let count = 0
  for (const target of entries.keys()) if (!other.entries.has(target)) count += 1
  return count
}

function* freshnessEvents(before: ListState, after: ListState): Generator<DenylistEvent> {
  const { freshness, lastFailure } = after
  if (freshness === before.freshness) return
  if (freshness === 'stale' || freshness === 'expired') {
    // Without a failure, no attempt has ended in time: the process was frozen, or its event loop was blocked.
    yield { type: freshness, reason: lastFailure ?? 'timeout' }
  }
  if (freshness === 'fresh' && before.freshness !== 'cold') yield { type: 'recovered' }
}

/** A time on both clocks: the monotonic one may stop while the machine sleeps, and the wall clock may be set back. */
export interface ClockReading {
  /** Milliseconds since the epoch. */
  readonly wallMs: number
  /** Milliseconds since the process began. */
  readonly monotonicMs: number
}

export const readClocks = (): ClockReading => ({
  wallMs: Date.now(),
  monotonicMs: performance.now(),
})

/** The longer of the two times that the clocks show. */
const elapsedMs = (since: ClockReading, now: ClockReading): number =>
  Math.max(0, now.wallMs - since.wallMs, now.monotonicMs - since.monotonicMs)
