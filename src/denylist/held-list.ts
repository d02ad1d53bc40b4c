import { announceDenylist } from './event.js'
import { advance, COLD, healthOf, type Life, type LifeEvent, stateOf, tidings } from './life.js'
import { listsByIssuer, NOTHING_DENIED } from './lists.js'
import type { DeniedLists, DenylistHealth } from './live-denylist.js'
import { currentMoment } from './moment.js'

/** What holds while the list was never read, or not for `maxStaleSeconds`. */
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
  let life = COLD
  let byIssuer: ReadonlyMap<string, DeniedLists> = new Map()

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
      announceDenylist(() => tidings(before, life))
    },
    lists(issuer) {
      if (whenUnknown === 'refuse' && !isKnown()) return undefined
      return byIssuer.get(issuer) ?? NOTHING_DENIED
    },
    isKnown,
    health: () => healthOf(life, currentMoment(), maxStaleSeconds),
  }
}
