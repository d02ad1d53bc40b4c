import type { Moment } from '../../../src/verification/denylist/list-state.js'
import {
  advance,
  COLD,
  type Life,
  type LifeEvent,
} from '../../../src/verification/denylist/list-state.js'
import type { HeldEntry, ReadList } from '../../../src/verification/denylist/merge-entries.js'

export const START_SECONDS = 1_800_000_000
export const MAX_STALE_SECONDS = 10

/** This long after the start, on both clocks. */
export const momentAt = (milliseconds: number): Moment => ({
  wallMs: START_SECONDS * 1000 + milliseconds,
  monotonicMs: milliseconds,
})

export const caller = (changes: Partial<HeldEntry> = {}): HeldEntry => ({
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
  entries: Record<string, HeldEntry> = {},
  rest: Partial<ReadList> & { readonly nonce?: string } = {},
): ReadList => ({
  version: { number, nonce: rest.nonce ?? `nonce ${number}` },
  serverSeconds: START_SECONDS,
  marks: new Map(),
  entries: new Map(Object.entries(entries)),
  ...rest,
})

export const read = (list: ReadList, atMs = 0): LifeEvent => ({
  type: 'read',
  at: momentAt(atMs),
  askedAt: momentAt(atMs),
  list,
})

export const unchanged = (atMs: number, serverSeconds = START_SECONDS): LifeEvent => ({
  type: 'unchanged',
  at: momentAt(atMs),
  askedAt: momentAt(atMs),
  serverSeconds,
})

export const failed = (atMs: number): LifeEvent => ({
  type: 'failed',
  at: momentAt(atMs),
  code: 'timeout',
})

/** The state after these events. */
export const lived = (...events: readonly LifeEvent[]): Life =>
  events.reduce((life, event) => advance(life, event, MAX_STALE_SECONDS), COLD)

export const heldOf = ({ held }: Life): string[] => [...held.entries.keys()].sort()
