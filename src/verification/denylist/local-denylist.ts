import { announceDenylist } from '../../base/decision/denylist-event.js'
import {
  advance,
  COLD,
  currentMoment,
  healthOf,
  knownUntil,
  type Life,
  type LifeEvent,
  stateOf,
  tidings,
} from './list-state.js'
import type { DeniedLists, DenylistHealth } from './live-denylist.js'
import type { HeldEntry } from './merge-entries.js'

/** The decision while the list was never read, or not for `maxStaleSeconds`. */
export type WhenUnknown = 'refuse' | 'accept'

export interface HeldListOptions {
  readonly maxStaleSeconds: number
  readonly whenUnknown: WhenUnknown
}

/** The list of one receiver in memory: what has happened to it goes in, what is denied comes out. */
export interface HeldList {
  readonly life: Life
  apply(event: LifeEvent): void
  /** `undefined` when it is not known and requests are to be refused. */
  lists(issuer: string): DeniedLists | undefined
  isKnown(): boolean
  health(): DenylistHealth
}

export function createHeldList({ maxStaleSeconds, whenUnknown }: HeldListOptions): HeldList {
  const isRefusing = whenUnknown === 'refuse'
  let life = COLD
  let byIssuer: ReadonlyMap<string, DeniedLists> = new Map()
  let knownUntilMs = Number.NEGATIVE_INFINITY

  function isKnown(): boolean {
    const state = stateOf(life, currentMoment(), maxStaleSeconds)
    return state === 'fresh' || state === 'stale'
  }

  return {
    get life() {
      return life
    },
    apply(event) {
      const before = life
      life = advance(before, event, maxStaleSeconds)
      if (life.held !== before.held) byIssuer = listsByIssuer(life.held.entries.values())
      knownUntilMs = knownUntil(life, event.at, maxStaleSeconds)
      announceDenylist(() => tidings(before, life))
    },
    lists(issuer) {
      // Each request pays for this: it reads one clock. Both count at each look.
      if (isRefusing && Date.now() > knownUntilMs) return undefined
      return byIssuer.get(issuer) ?? NOTHING_DENIED
    },
    isKnown,
    health: () => healthOf(life, currentMoment(), maxStaleSeconds),
  }
}

/** For every issuer of which nothing is denied. */
const NOTHING_DENIED: DeniedLists = Object.freeze({
  callers: new Set<string>(),
  keys: new Set<string>(),
  tokenIds: new Set<string>(),
})

interface Draft {
  readonly callers: Set<string>
  readonly keys: Set<string>
  readonly tokenIds: Set<string>
  issuedBefore?: number
}

/** The denied tokens of each issuer. */
function listsByIssuer(entries: Iterable<HeldEntry>): ReadonlyMap<string, DeniedLists> {
  const lists = new Map<string, Draft>()
  for (const entry of entries) {
    let draft = lists.get(entry.issuer)
    if (draft === undefined) {
      draft = { callers: new Set(), keys: new Set(), tokenIds: new Set() }
      lists.set(entry.issuer, draft)
    }
    add(draft, entry)
  }
  for (const draft of lists.values()) Object.freeze(draft)
  return lists
}

function add(draft: Draft, { kind, value, issuedBefore }: HeldEntry): void {
  switch (kind) {
    case 'caller':
      draft.callers.add(value)
      break
    case 'key':
      draft.keys.add(value)
      break
    case 'token':
      draft.tokenIds.add(value)
      break
    case 'issued-before':
      draft.issuedBefore = issuedBefore
  }
}
