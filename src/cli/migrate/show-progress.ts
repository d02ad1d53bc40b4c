import type { MigrationProgress } from '../../base/decision/migration-event.js'
import type { CommandContext } from '../frame/command.js'
import { formatCounts, formatNumber } from './reports.js'

/** One line a second is enough for a log, ten a second for the eye. */
const LINE_EVERY_MS = 1000
const DRAW_EVERY_MS = 100

/**
 * Shows the progress of a run: on a terminal one line that is redrawn, otherwise a line for each event that happens once,
 * and at most one a second for a phase that changes. `now` returns milliseconds of a monotonic clock.
 */
export function showProgress(
  { note, event: emit, screen }: Pick<CommandContext, 'note' | 'event' | 'screen'>,
  now: () => number = () => performance.now(),
) {
  const everyMs = screen === undefined ? LINE_EVERY_MS : DRAW_EVERY_MS
  let phase: string | undefined
  let last: string | undefined
  let shownAt = Number.NEGATIVE_INFINITY

  function show(event: MigrationProgress): void {
    const measured = measure(event)
    const lines = measured === undefined ? onceLines(event) : phaseLines(event, measured)
    const [line] = lines
    const isTooSoon = measured?.phase === phase && now() - shownAt < everyMs
    if (line === undefined || line === last || (measured !== undefined && isTooSoon)) return
    if (screen === undefined) note(line)
    // A line that fills the last column would wrap.
    else screen.draw(lines.find((text) => text.length < screen.columns) ?? '')
    last = line
    if (measured === undefined) return
    phase = measured.phase
    shownAt = now()
  }

  return {
    onProgress(event: MigrationProgress): void {
      emit(event)
      show(event)
    },
    /** Clears the line of the terminal. */
    end: (): void => screen?.draw(''),
  }
}

/** The line of a phase, and what a narrow terminal shows of it: half a number would be a wrong number. */
function phaseLines({ counts }: MigrationProgress, { phase, done, total }: Measure): string[] {
  const progress = `${phase}: ${formatNumber(done)} of ${formatNumber(total)}`
  // Those that are not done yet count as staged, in `reconcile` too, which compares users who were reconciled before.
  const shown = phase === 'staging' ? counts : { ...counts, staged: 0 }
  return [[progress, formatCounts(shown)].filter(Boolean).join('; '), progress, phase]
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

/** Returns no line for an event that is not shown. */
function onceLines(event: MigrationProgress): string[] {
  const what = WHAT_HAPPENED[event.type]
  if (what === undefined) return []
  const batch = event.batch === undefined ? '' : `batch ${formatNumber(event.batch)}: `
  const concerned = event.type === 'preflight' ? event.identities : event.users
  const users = concerned === undefined ? '' : ` (${formatNumber(concerned)})`
  return [`${batch}${what}${users}`]
}

/** The progress of one phase of a run. */
interface Measure {
  readonly phase: 'staging' | 'waiting' | 'reconciling'
  readonly done: number
  readonly total: number
}

/** Returns `undefined` for an event that happens once, and where no row waits. */
function measure({ type, counts, identities, rows }: MigrationProgress): Measure | undefined {
  switch (type) {
    case 'batch_staged':
      return { phase: 'staging', done: identities - counts.pending, total: identities }
    case 'waiting': {
      const left = (rows?.new ?? 0) + (rows?.processing ?? 0)
      if (left === 0) return undefined
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
