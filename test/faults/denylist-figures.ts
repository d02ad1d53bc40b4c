const isAsked = process.env['DENYLIST_FIGURES'] !== undefined

/**
 * From what was written, or the server's being there again, to the last other answer: a second, and
 * five where other tests keep the machine busy.
 */
export const APPLIED_WITHIN_MS = isAsked ? 1000 : 5000

/** A write of the desk may take so long: no figure counts it. */
export const WRITE_PATIENCE = { timeoutMs: 20_000 }

/** Two questions of a receiver are so far apart. */
export const POLL_MS = 250

/** Prints most and median where `DENYLIST_FIGURES` asks for figures. */
export function report(what: string, figures: readonly number[]): void {
  if (!isAsked) return
  const sorted = figures.toSorted((one, other) => one - other)
  const median = sorted[Math.floor((sorted.length - 1) / 2)]
  const rounded = [sorted.at(-1), median].map((ms) => Math.round(ms ?? Number.NaN))
  console.log(`${what}: most ${rounded[0]} ms, median ${rounded[1]} ms, runs ${figures.length}`)
}
