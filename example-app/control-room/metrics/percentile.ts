/** The smallest value that this share of all values does not exceed; `sorted` is not empty. */
function percentile(sorted: readonly number[], share: number): number {
  const rank = Math.max(1, Math.ceil(share * sorted.length))
  return sorted[rank - 1] ?? Number.NaN
}

export interface Spread {
  readonly medianMs: number
  readonly p99Ms: number
}

/** `undefined` where there are no values. */
export function spreadOf(values: readonly number[]): Spread | undefined {
  if (values.length === 0) return undefined
  const sorted = values.toSorted((one, other) => one - other)
  return { medianMs: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99) }
}
