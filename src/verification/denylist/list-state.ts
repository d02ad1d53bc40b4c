import type { DenylistEvent, DenylistFailureCode } from '../../base/decision/denylist-event.js'
import type { DenylistHealth } from './live-denylist.js'
import {
  type Holding,
  type ListVersion,
  merge,
  NOTHING_HELD,
  nextEndOf,
  type ReadList,
  withoutEnded,
} from './merge-entries.js'

export type DenylistState = DenylistHealth['state']

/** The state of a live denylist, as an immutable value. */
export interface Life {
  readonly held: Holding
  /** Seconds of the server's clock. */
  readonly nextEndAt: number
  readonly version: ListVersion
  /** The highest number ever seen: what ends an entry that is held has to lie above it. */
  readonly highestNumber: number
  /** When the last question was asked that confirmed the list. */
  readonly confirmedAt: Moment | undefined
  /** Why the last attempt failed. */
  readonly trouble: DenylistFailureCode | undefined
  /** The state at the last event. */
  readonly state: DenylistState
}

/** An event of a live denylist. */
export type LifeEvent = { readonly at: Moment } & (
  | { readonly type: 'unchanged'; readonly askedAt: Moment; readonly serverSeconds: number }
  | { readonly type: 'read'; readonly askedAt: Moment; readonly list: ReadList }
  | { readonly type: 'failed'; readonly code: DenylistFailureCode }
)

/** Six questions in a row have failed by then. */
const FRESH_MS = 1500

/** The version of a list that was never written. */
export const NO_VERSION: ListVersion = { number: 0, nonce: '' }

export const COLD: Life = {
  held: NOTHING_HELD,
  nextEndAt: Number.POSITIVE_INFINITY,
  version: NO_VERSION,
  highestNumber: 0,
  confirmedAt: undefined,
  trouble: undefined,
  state: 'cold',
}

/** The state after an event. Entries expire only here, by the server's time. */
export function advance(life: Life, event: LifeEvent, maxStaleSeconds: number): Life {
  const after = applied(life, event)
  return { ...after, state: stateOf(after, event.at, maxStaleSeconds) }
}

function applied(life: Life, event: LifeEvent): Life {
  switch (event.type) {
    case 'failed':
      return { ...life, trouble: event.code }
    case 'unchanged': {
      const confirmed = { ...life, confirmedAt: event.askedAt, trouble: undefined }
      if (event.serverSeconds < life.nextEndAt) return confirmed
      return { ...confirmed, ...holding(withoutEnded(life.held, event.serverSeconds)) }
    }
    case 'read': {
      const { askedAt, list } = event
      return {
        ...life,
        ...holding(merge(life.held, list)),
        version: list.version,
        highestNumber: highestOf(life, list),
        confirmedAt: askedAt,
        trouble: undefined,
      }
    }
  }
}

const holding = (held: Holding): Pick<Life, 'held' | 'nextEndAt'> => ({
  held,
  nextEndAt: nextEndOf(held),
})

function highestOf({ highestNumber }: Life, { version, entries }: ReadList): number {
  let highest = Math.max(highestNumber, version.number)
  for (const { number } of entries.values()) if (number > highest) highest = number
  return highest
}

export const isSameVersion = (one: ListVersion, other: ListVersion): boolean =>
  one.number === other.number && one.nonce === other.nonce

export function stateOf(
  { confirmedAt }: Pick<Life, 'confirmedAt'>,
  now: Moment,
  maxStaleSeconds: number,
): DenylistState {
  if (confirmedAt === undefined) return 'cold'
  const ageMs = elapsedMs(confirmedAt, now)
  if (ageMs > maxStaleSeconds * 1000) return 'expired'
  return ageMs >= FRESH_MS ? 'stale' : 'fresh'
}

/** Milliseconds since the epoch until which the list is known, unless the wall clock is set back. */
export function knownUntil(
  { confirmedAt }: Pick<Life, 'confirmedAt'>,
  now: Moment,
  maxStaleSeconds: number,
): number {
  if (confirmedAt === undefined) return Number.NEGATIVE_INFINITY
  return now.wallMs + maxStaleSeconds * 1000 - elapsedMs(confirmedAt, now)
}

export function healthOf(life: Life, now: Moment, maxStaleSeconds: number): DenylistHealth {
  const { held, version, confirmedAt, trouble } = life
  return {
    state: stateOf(life, now, maxStaleSeconds),
    entries: held.entries.size,
    version: version.number,
    ...(confirmedAt !== undefined && { ageSeconds: elapsedMs(confirmedAt, now) / 1000 }),
    ...(held.kept.size > 0 && { regressed: true }),
    ...(trouble !== undefined && { lastError: trouble }),
  }
}

/** The events of a transition from one state to the next. */
export function tidings(before: Life, after: Life): readonly DenylistEvent[] {
  return [...tidingsOfList(before, after), ...tidingsOfAge(before, after)]
}

function* tidingsOfList(before: Life, after: Life): Generator<DenylistEvent> {
  if (!isSameVersion(before.version, after.version)) {
    const added = countMissing(after.held, before.held)
    const removed = countMissing(before.held, after.held)
    yield { type: 'changed', version: after.version.number, added, removed }
  }
  const kept = after.held.kept.size
  if (kept > before.held.kept.size) yield { type: 'regressed', kept }
}

function countMissing({ entries }: Holding, there: Holding): number {
  let count = 0
  for (const target of entries.keys()) if (!there.entries.has(target)) count += 1
  return count
}

function* tidingsOfAge(before: Life, after: Life): Generator<DenylistEvent> {
  const { state, trouble } = after
  if (state === before.state) return
  if ((state === 'stale' || state === 'expired') && trouble !== undefined) {
    yield { type: state, reason: trouble }
  }
  if (state === 'fresh' && before.state !== 'cold') yield { type: 'recovered' }
}

/**
 * A moment on both clocks. The monotonic one may stand still while the machine sleeps, the wall clock
 * may be set back.
 */
export interface Moment {
  /** Milliseconds since the epoch. */
  readonly wallMs: number
  /** Milliseconds since the process began. */
  readonly monotonicMs: number
}

export const currentMoment = (): Moment => ({
  wallMs: Date.now(),
  monotonicMs: performance.now(),
})

/** How long ago it was, by the clock that says more. */
const elapsedMs = (since: Moment, now: Moment): number =>
  Math.max(0, now.wallMs - since.wallMs, now.monotonicMs - since.monotonicMs)
