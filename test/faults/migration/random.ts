/** A source of choices that a seed repeats. */
export interface Random {
  /** An integer from 0, below `limit`. */
  below(limit: number): number
  pick<T>(choices: readonly T[]): T
  chance(probability: number): boolean
}

/** mulberry32: small, fast and good enough to choose by. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    below,
    pick: (choices) => choices[below(choices.length)] as (typeof choices)[number],
    chance: (probability) => next() < probability,
  }
}
