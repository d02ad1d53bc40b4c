import type { History } from './history.js'
import { CALM_AT_MS, SETTLE_MS, type Story } from './story.js'

/** Clocks are at most so much slower or faster. */
export const DRIFT = 0.03
/** A reply that waits no longer than this is no fault: the store's own time limit is 250 ms. */
const HARMLESS_DELAY_MS = 50

/** What a story did to its parties: what excuses an answer, and what does not. */
export class Circumstances {
  readonly #story: Story
  readonly #history: History
  readonly #storedAs: ReadonlyMap<string, string>

  constructor(story: Story, history: History, storedAs: ReadonlyMap<string, string>) {
    this.#story = story
    this.#history = history
    this.#storedAs = storedAs
  }

  /** Whether any call of the store may time out. */
  get #isStormy(): boolean {
    const { weather, waitsForReplicas, redis } = this.#story
    const { delayChance, delayMs } = weather
    if (waitsForReplicas && redis.lagMs > HARMLESS_DELAY_MS) return true
    return delayChance > 0 && delayMs > HARMLESS_DELAY_MS
  }

  /** Whether the record of a key was lost. A failover loses nothing that replicas have confirmed. */
  isLost(
    recordName: string,
    from: number,
    until: number,
    what: 'reservations' | 'results' = 'reservations',
  ): boolean {
    const key = `esa:k:${this.#storedAs.get(recordName)}`
    return this.#history.losses.some(({ what: fault, at, keys }) => {
      if (at < from || at > until || !keys.has(key)) return false
      return what === 'results' || fault !== 'failover' || !this.#story.waitsForReplicas
    })
  }

  isDisturbed(
    who: string,
    from: number,
    until: number,
    counts: (what: string) => boolean = () => true,
  ): boolean {
    if (counts('weather') && this.#isStormy && from < CALM_AT_MS + SETTLE_MS) return true
    return this.#history.disturbances.some(
      (each) =>
        counts(each.what) &&
        (each.who === who || each.who === '') &&
        each.from <= until &&
        each.until >= from,
    )
  }

  hasJumped(until: number): boolean {
    return this.#history.disturbances.some(
      ({ what, from }) => what === 'jump Redis clock' && from <= until,
    )
  }

  /** When the receiver woke up again, each time. */
  freezesOf(receiver: string, before: number): readonly number[] {
    return this.#history.disturbances
      .filter(
        ({ what, who, from }) => what === 'freeze receiver' && who === receiver && from < before,
      )
      .map(({ from, ms }) => from + ms)
  }
}
