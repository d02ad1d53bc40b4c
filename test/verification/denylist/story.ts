import type { ClockReading } from '../../../src/verification/denylist/list-state.js'
import {
  advance,
  INITIAL_STATE,
  type ListEvent,
  type ListState,
} from '../../../src/verification/denylist/list-state.js'
import type { LocalEntry, ReadList } from '../../../src/verification/denylist/merge-entries.js'

export const START_SECONDS = 1_800_000_000
export const MAX_STALE_SECONDS = 10

/** This long after the start, on both clocks. */
export const momentAt = (milliseconds: number): ClockReading => ({
  wallMs: START_SECONDS * 1000 + milliseconds,
  monotonicMs: milliseconds,
})

export const caller = (changes: Partial<LocalEntry> = {}): LocalEntry => ({
  issuer: 'https://core.example',
  kind: 'caller',
  value: 'orders',
  issuedBefore: 0,
  number: 1,
  endsAt: Number.POSITIVE_INFINITY,
  ...changes,
})

export const listOf = (
  number: number,
  entries: Record<string, LocalEntry> = {},
  rest: Partial<ReadList> & { readonly nonce?: string } = {},
): ReadList => ({
  version: { number, nonce: rest.nonce ?? `nonce ${number}` },
  serverSeconds: START_SECONDS,
  tombstones: new Map(),
  entries: new Map(Object.entries(entries)),
  ...rest,
})

export const read = (list: ReadList, atMs = 0): ListEvent => ({
  type: 'read',
  at: momentAt(atMs),
  requestedAt: momentAt(atMs),
  list,
})

export const unchanged = (atMs: number, serverSeconds = START_SECONDS): ListEvent => ({
  type: 'unchanged',
  at: momentAt(atMs),
  requestedAt: momentAt(atMs),
  serverSeconds,
})

export const failed = (atMs: number): ListEvent => ({
  type: 'failed',
  at: momentAt(atMs),
  code: 'timeout',
})

/** The state after these events. */
export const lived = (...events: readonly ListEvent[]): ListState =>
  events.reduce((life, event) => advance(life, event, MAX_STALE_SECONDS), INITIAL_STATE)
