import type { Measurement } from './receiver-process.js'

export interface Sample extends Measurement {
  /** Hours from the start. */
  readonly at: number
}

/** The slope of the least-squares line through the heap of the second half: % an hour, and its standard error. */
export function heapSlope(samples: readonly Pick<Sample, 'at' | 'heap'>[]): {
  percent: number
  error: number
} {
  const half = samples.slice(Math.floor(samples.length / 2))
  const mean = (read: (sample: (typeof samples)[number]) => number): number =>
    half.reduce((sum, sample) => sum + read(sample), 0) / half.length
  const [at, heap] = [mean((sample) => sample.at), mean((sample) => sample.heap)]
  const spread = mean((sample) => (sample.at - at) ** 2)
  const slope = mean((sample) => (sample.at - at) * (sample.heap - heap)) / spread
  const rest = mean((sample) => (sample.heap - heap - slope * (sample.at - at)) ** 2)
  const error = Math.sqrt(rest / spread / (half.length - 2))
  return { percent: (100 * slope) / heap, error: (100 * error) / heap }
}
