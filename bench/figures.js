/* What is quoted of the costs that `measure` returns: heats of turns. */

/** Neighbours and collections only ever add to a turn: the cheapest is nearest to the truth. */
export const cheapest = (heats) => Math.min(...heats.flat())

export function median(heats) {
  const sorted = heats.flat().sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]
}

/** Cost of the other over cost of ours: from the whole run, and from each heat by itself. */
export function ratioOf(other, ours) {
  const byHeat = ours.map((turns, heat) => Math.min(...other[heat]) / Math.min(...turns))
  return {
    ratio: cheapest(other) / cheapest(ours),
    least: Math.min(...byHeat),
    most: Math.max(...byHeat),
  }
}
