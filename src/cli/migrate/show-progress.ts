import type { MigrationProgress } from '../../base/decision/migration-event.js'
import type { CommandContext, Screen } from '../frame/command.js'
import { formatDuration } from '../output/format-time.js'
import { formatCounts, formatNumber, nonZeroCounts } from './report-lines.js'

type Shown = Pick<CommandContext, 'note' | 'event' | 'screen'>

/** One line a second is enough for a log, ten a second for the eye. */
const LINE_EVERY_MS = 1000
const DRAW_EVERY_MS = 100

/** Shows the progress of a run. `now` returns milliseconds of a monotonic clock. */
export function showProgress(
  { note, event: emit, screen }: Shown,
  now: () => number = () => performance.now(),
) {
  const show = screen === undefined ? plainLines(note, now) : progressBar(screen, now)
  return {
    onProgress(event: MigrationProgress): void {
      emit(event)
      show(event)
    },
    /** Clears the line of the terminal. */
    end: (): void => screen?.draw(''),
  }
}

/** Prints a line for each event that happens once, and at most one a second for a phase that changes. */
function plainLines(note: (line: string) => void, now: () => number) {
  let phase: string | undefined
  let last: string | undefined
  let shownAt = Number.NEGATIVE_INFINITY
  return (event: MigrationProgress): void => {
    const measured = measure(event)
    const line = plainLine(event, measured)
    const isTooSoon = measured?.phase === phase && now() - shownAt < LINE_EVERY_MS
    if (line === undefined || line === last || (measured !== undefined && isTooSoon)) return
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
  /** The value of `done` at the start of the phase. */
  readonly doneBefore: number
}

function progressBar(screen: Screen, now: () => number) {
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
    const counts = nonZeroCounts(event.counts).map((words) => words.join(' '))
    screen.draw(barLine({ measured, rate, counts, columns: screen.columns }))
  }
}

/** Per second; `undefined` while it is too early to know. */
function rateOf(
  { done }: Measure,
  { startedAt, doneBefore }: Phase,
  at: number,
): number | undefined {
  const seconds = (at - startedAt) / 1000
  const advanced = done - doneBefore
  return advanced > 0 && seconds > 0 ? advanced / seconds : undefined
}

const WHAT_HAPPENED: Readonly<Partial<Record<MigrationProgress['type'], string>>> = {
  preflight: 'preflight',
  batch_rejected: 'users rejected by the core',
  reply_lost: 'no reply: checking whether the call took effect',
  reply_resolved: 'the lost reply is resolved',
  row_failed: 'rows failed',
  rows_deleted: 'rows deleted',
  settled: 'users whose rows were deleted: looked up or imported',
  corrected: 'corrections applied',
}

/** A line for a log; `undefined` for an event that is not shown. */
function plainLine(event: MigrationProgress, measured: Measure | undefined): string | undefined {
  if (measured !== undefined) {
    const counts = formatCounts(event.counts)
    return [`${measured.phase}: ${progressOf(measured)}`, counts].filter(Boolean).join('; ')
  }
  const what = WHAT_HAPPENED[event.type]
  if (what === undefined) return undefined
  const batch = event.batch === undefined ? '' : `batch ${formatNumber(event.batch)}: `
  const concerned = event.type === 'preflight' ? event.identities : event.users
  const users = concerned === undefined ? '' : ` (${formatNumber(concerned)})`
  return `${batch}${what}${users}`
}

const progressOf = ({ done, total }: Measure): string =>
  `${formatNumber(done)} of ${formatNumber(total)}`

const BAR_WIDTH = 20
/** Long enough for each phase, so that the bars are aligned. */
const PHASE_WIDTH = 'reconciling'.length

interface Bar {
  readonly measured: Measure
  /** Per second. */
  readonly rate: number | undefined
  readonly counts: readonly string[]
  readonly columns: number
}

const GAP = '  '

/**
 * One line for a terminal. A part that does not fit is left out, because half a number would be a
 * wrong number.
 */
function barLine({ measured, rate, counts, columns }: Bar): string {
  const { phase, done, total } = measured
  const share = total === 0 ? 1 : done / total
  const filled = Math.floor(share * BAR_WIDTH)
  const bar = `[${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}]`
  const progress = progressOf(measured)
  const beginnings = [
    [`${phase.padEnd(PHASE_WIDTH)} ${bar}`, progress].join(GAP),
    [phase, progress].join(GAP),
    phase,
  ]
  const beginning = beginnings.find((text) => fits(text, columns)) ?? ''
  const rest = [
    ...(rate === undefined ? [] : [`${GAP}${rateInWords(rate)}, ${timeLeft(measured, rate)}`]),
    ...counts.map((count, index) => `${index === 0 ? GAP : ', '}${count}`),
  ]
  return rest.reduce(
    ({ line, isFull }, part) => {
      const isTooLong = isFull || !fits(line + part, columns)
      return { line: isTooLong ? line : line + part, isFull: isTooLong }
    },
    { line: beginning, isFull: beginning === '' },
  ).line
}

/** A line that fills the last column would wrap. */
const fits = (line: string, columns: number): boolean => line.length < columns

const rateInWords = (rate: number): string =>
  rate < 1 ? `${formatNumber(Math.round(rate * 60))}/min` : `${formatNumber(Math.round(rate))}/s`

const timeLeft = ({ done, total }: Measure, rate: number): string =>
  `${formatDuration((total - done) / rate)} left`

/** The progress of one phase of a run. */
interface Measure {
  readonly phase: 'staging' | 'waiting' | 'reconciling'
  readonly done: number
  readonly total: number
}

/** Returns `undefined` for an event that happens once. */
function measure({ type, counts, identities, rows }: MigrationProgress): Measure | undefined {
  switch (type) {
    case 'batch_staged':
      return { phase: 'staging', done: identities - counts.pending, total: identities }
    case 'waiting': {
      const left = (rows?.new ?? 0) + (rows?.processing ?? 0)
      // The core's numbers include rows that this migration did not create.
      const total = Math.max(counts.staged, left)
      return { phase: 'waiting', done: total - left, total }
    }
    case 'reconciling': {
      // A user who is still `staged` has not been compared yet.
      const { reconciled, missing, differs, shared, accepted, staged } = counts
      const done = reconciled + missing + differs + shared + accepted
      return { phase: 'reconciling', done, total: done + staged }
    }
    default:
      return undefined
  }
}
