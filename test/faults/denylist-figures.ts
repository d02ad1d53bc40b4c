/** From what was written, or the server's being there again, to the last other answer. */
export const APPLIED_WITHIN_MS = 1000

const isAsked = process.env['DENYLIST_FIGURES'] !== undefined

/** Prints most and median where `DENYLIST_FIGURES` asks for figures. */
export function report(what: string, figures: readonly number[]): void {
  if (!isAsked) return
  const sorted = figures.toSorted((one, other) => one - other)
  const median = sorted[Math.floor((sorted.length - 1) / 2)]
  const rounded = [sorted.at(-1), median].map((ms) => Math.round(ms ?? Number.NaN))
  console.log(`${what}: most ${rounded[0]} ms, median ${rounded[1]} ms, runs ${figures.length}`)
}
