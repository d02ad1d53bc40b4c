import type { ReceiverState } from '../../protocol.js'
import { seconds } from '../components/words.js'

type Line = ReceiverState['keySetLine']

export type KeySetState = Line[number]['state']

const WINDOW_MS = 5 * 60_000

/** A refresh that takes longer is shown. */
const REFRESH_MS = 1000

const IN_ORDER: readonly KeySetState[] = ['fresh', 'stale', 'expired', 'cold']

/** A stretch of the time line in which the state stayed the same. */
export interface Segment {
  readonly state: KeySetState
  /** When it began, which may be before the line does. */
  readonly from: number
  readonly milliseconds: number
  /** Of the whole time line, from its left end. */
  readonly startPercent: number
  readonly widthPercent: number
}

/** What the time line of the last five minutes shows. */
export function segmentsOf(line: Line, now: number): readonly Segment[] {
  const begin = now - WINDOW_MS
  const shown = withoutRefreshes(line)
  return shown.flatMap(({ since, state }, index) => {
    const shownFrom = Math.max(begin, since)
    const to = Math.min(now, shown[index + 1]?.since ?? now)
    if (to <= shownFrom) return []
    const milliseconds = to - shownFrom
    return [
      {
        state,
        from: since,
        milliseconds,
        startPercent: percent(shownFrom - begin),
        widthPercent: percent(milliseconds),
      },
    ]
  })
}

/** While a refresh is under way the set is stale for a moment, which says nothing. */
function withoutRefreshes(line: Line): Line {
  const lasting = line.filter(({ since, state }, index) => {
    const next = line[index + 1]
    return state !== 'stale' || !next || next.since - since > REFRESH_MS || next.state !== 'fresh'
  })
  return lasting.filter(({ state }, index) => state !== lasting[index - 1]?.state)
}

const percent = (milliseconds: number): number =>
  Math.round((milliseconds / WINDOW_MS) * 10_000) / 100

/** The time line for those who do not see it. */
export function lineInWords(segments: readonly Segment[]): string {
  const last = segments.at(-1)
  if (!last) return 'No state is known yet.'
  const sums = IN_ORDER.flatMap((state) => {
    const sum = segments
      .filter((segment) => segment.state === state)
      .reduce((total, segment) => total + segment.milliseconds, 0)
    return sum > 0 ? [`${state} ${seconds(sum)}`] : []
  })
  return `Of the last five minutes: ${sums.join(', ')}.`
}
