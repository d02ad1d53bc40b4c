import { announceDenylist } from '../../base/decision/store-event.js'
import {
  advance,
  eventsBetween,
  freshnessAt,
  INITIAL_STATE,
  knownUntil,
  type ListEvent,
  type ListState,
  listHealth,
  readClocks,
} from './list-state.js'
import type { DeniedLists, DenylistHealth } from './live-denylist.js'
import type { LocalEntry } from './merge-entries.js'

/** The decision while the list has not been read yet, or not within the last `maxStaleSeconds`. */
type WhenUnknown = 'refuse' | 'accept'

interface LocalDenylistOptions {
  readonly maxStaleSeconds: number
  readonly whenUnknown: WhenUnknown
}

/** A receiver's copy of the list, in memory. */
export interface LocalDenylist {
  readonly state: ListState
  apply(event: ListEvent): void
  /** Returns `undefined` if the list is unknown and requests must be refused. */
  lists(issuer: string): DeniedLists | undefined
  isKnown(): boolean
  health(): DenylistHealth
}

export function createLocalDenylist({
  maxStaleSeconds,
  whenUnknown,
}: LocalDenylistOptions): LocalDenylist {
  const refusesUnknown = whenUnknown === 'refuse'
  let state = INITIAL_STATE
  let byIssuer: ReadonlyMap<string, DeniedLists> = new Map()
  let knownUntilMs = Number.NEGATIVE_INFINITY

  function isKnown(): boolean {
    const freshness = freshnessAt(state, readClocks(), maxStaleSeconds)
    return freshness === 'fresh' || freshness === 'stale'
  }

  function apply(event: ListEvent): void {
    const before = state
    state = advance(before, event, maxStaleSeconds)
    if (state.local !== before.local) byIssuer = listsByIssuer(state.local.entries.values())
    knownUntilMs = knownUntil(state, event.at, maxStaleSeconds)
    announceDenylist(() => eventsBetween(before, state))
  }

  /** Publishes that the list has expired, if no attempt has: polling has stopped, or the process was frozen. */
  function noteExpiry(): void {
    if (state.freshness === 'fresh' || state.freshness === 'stale') {
      apply({ type: 'aged', at: readClocks() })
    }
  }

  return {
    get state() {
      return state
    },
    apply,
    lists(issuer) {
      // Runs for each request, so it reads only the wall clock. Each poll also reads the monotonic clock.
      if (Date.now() > knownUntilMs) {
        noteExpiry()
        if (refusesUnknown) return undefined
      }
      return byIssuer.get(issuer) ?? NOTHING_DENIED
    },
    isKnown,
    health: () => listHealth(state, readClocks(), maxStaleSeconds),
  }
}

interface IssuerLists extends DeniedLists {
  readonly callers: Set<string>
  readonly keys: Set<string>
  readonly tokenIds: Set<string>
  issuedBefore?: number
}

const emptyLists = (): IssuerLists => ({
  callers: new Set(),
  keys: new Set(),
  tokenIds: new Set(),
})

/** The lists of an issuer without an entry. */
const NOTHING_DENIED: DeniedLists = emptyLists()

const SETS = { caller: 'callers', key: 'keys', token: 'tokenIds' } as const

/** Groups the entries by issuer and kind. */
function listsByIssuer(entries: Iterable<LocalEntry>): ReadonlyMap<string, DeniedLists> {
  const byIssuer = new Map<string, IssuerLists>()
  for (const { issuer, kind, value, issuedBefore } of entries) {
    const lists = byIssuer.get(issuer) ?? emptyLists()
    byIssuer.set(issuer, lists)
    if (kind === 'issued-before') lists.issuedBefore = issuedBefore
    else lists[SETS[kind]].add(value)
  }
  return byIssuer
}
