import type { MigrationProgress } from '../../migration/run/progress.js'
import type { CommandContext, Screen } from '../frame/command.js'
import { countsThatAre } from './format-counts.js'
import { type Measure, measure } from './phase-progress.js'
import { barLine, fits, plainLine } from './progress-lines.js'

/** Shows the steps of a run while it is under way. */
export interface ProgressView {
  readonly onProgress: (event: MigrationProgress) => void
  /** Leaves the terminal's line empty. */
  end(): void
}

type Shown = Pick<CommandContext, 'note' | 'event' | 'screen'>

/** A second is soon enough for a log, a tenth for the eye. */
const LINE_EVERY_MS = 1000
const DRAW_EVERY_MS = 100

/** `now`: milliseconds of a clock that only goes forward. */
export function showProgress(
  { note, event: tell, screen }: Shown,
  now: () => number = () => performance.now(),
): ProgressView {
  const show = screen === undefined ? plainLines(note, now) : bar(screen, now)
  return {
    onProgress(event) {
      tell(event)
      show(event)
    },
    end: () => screen?.draw(''),
  }
}

/** A line for what happens once; of what goes on, a line a second when it has changed. */
function plainLines(note: (line: string) => void, now: () => number) {
  let phase: string | undefined
  let last: string | undefined
  let shownAt = Number.NEGATIVE_INFINITY
  return (event: MigrationProgress): void => {
    const measured = measure(event)
    const line = plainLine(event, measured)
    const isSoon = measured?.phase === phase && now() - shownAt < LINE_EVERY_MS
    if (line === undefined || line === last || (measured !== undefined && isSoon)) return
    note(line)
    last = line
    if (measured === undefined) return
    phase = measured.phase
    shownAt = now()
  }
}

interface Phase {
  readonly name: string
  readonly startedAt: number
  /** What was done when it began. */
  readonly doneBefore: number
}

function bar(screen: Screen, now: () => number) {
  let phase: Phase | undefined
  let drawnAt = Number.NEGATIVE_INFINITY
  return (event: MigrationProgress): void => {
    const measured = measure(event)
    if (event.type === 'preflight') {
      const line = plainLine(event, measured) ?? ''
      screen.draw(fits(line, screen.columns) ? line : '')
    }
    if (measured === undefined) return
    const isNew = phase?.name !== measured.phase
    if (isNew) phase = { name: measured.phase, startedAt: now(), doneBefore: measured.done }
    if (!isNew && measured.done < measured.total && now() - drawnAt < DRAW_EVERY_MS) return
    drawnAt = now()
    const rate = phase && rateOf(measured, phase, now())
    const counts = countsThatAre(event.counts).map((words) => words.join(' '))
    screen.draw(barLine({ measured, rate, counts, columns: screen.columns }))
  }
}

/** A second; `undefined` while it is too early to tell. */
function rateOf(
  { done }: Measure,
  { startedAt, doneBefore }: Phase,
  at: number,
): number | undefined {
  const seconds = (at - startedAt) / 1000
  const advanced = done - doneBefore
  return advanced > 0 && seconds > 0 ? advanced / seconds : undefined
}
