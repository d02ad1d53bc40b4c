import type { Outcome, Second } from '../../protocol.js'

/** A line of a plot. */
export interface Line {
  readonly name: string
  /** A custom property of the style sheet. */
  readonly colour: `--${string}`
  /** Lengths of strokes and gaps in pixels, so that lines differ without their colours too. */
  readonly dash: readonly number[]
  readonly read: (second: Second) => number | undefined
}

export interface Plot {
  readonly id: string
  readonly title: string
  readonly unit: 'a second' | 'ms'
  readonly lines: readonly Line[]
}

const SOLID: readonly number[] = []
const LONG: readonly number[] = [10, 5]
const SHORT: readonly number[] = [5, 4]
const DOTTED: readonly number[] = [2, 3]
const MIXED: readonly number[] = [10, 4, 2, 4]

const outcome = (name: Outcome, dash: readonly number[]): Line => ({
  name,
  colour: `--${name}`,
  dash,
  read: ({ requests }) => requests[name],
})

export const PLOTS: readonly Plot[] = [
  {
    id: 'requests',
    title: 'Requests a second',
    unit: 'a second',
    lines: [
      outcome('accepted', SOLID),
      outcome('replayed', LONG),
      outcome('refused', SHORT),
      outcome('undecided', DOTTED),
      outcome('failed', MIXED),
    ],
  },
  {
    id: 'latency',
    title: 'Latency of requests',
    unit: 'ms',
    lines: [
      {
        name: 'median',
        colour: '--accent',
        dash: SOLID,
        read: ({ latency }) => latency?.medianMs,
      },
      {
        name: '99th percentile',
        colour: '--refused',
        dash: SHORT,
        read: ({ latency }) => latency?.p99Ms,
      },
    ],
  },
  {
    id: 'cache',
    title: 'Token cache',
    unit: 'a second',
    lines: [
      { name: 'hits', colour: '--accepted', dash: SOLID, read: ({ cacheHits }) => cacheHits },
      {
        name: 'misses',
        colour: '--replayed',
        dash: SHORT,
        read: ({ cacheMisses }) => cacheMisses,
      },
    ],
  },
  {
    id: 'store',
    title: 'Latency of the store',
    unit: 'ms',
    lines: [
      { name: 'median', colour: '--accent', dash: SOLID, read: ({ store }) => store?.medianMs },
      {
        name: '99th percentile',
        colour: '--refused',
        dash: SHORT,
        read: ({ store }) => store?.p99Ms,
      },
    ],
  },
]

/** Not plotted: a number says more. */
export const STORE_FAILURES: Line = {
  name: 'store failures',
  colour: '--failed',
  dash: SOLID,
  read: ({ storeFailures }) => storeFailures,
}
