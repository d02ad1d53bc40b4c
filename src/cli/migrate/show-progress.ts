import type { MigrationProgress } from '../../base/decision/migration-event.js'
import type { CommandContext } from '../frame/command.js'
import { formatCounts, formatNumber } from './reports.js'

/** Enough for a log, and for the eye. */
const LINE_EVERY_MS = 1000

/**
 * Shows the progress of a run: a line for each event that happens once, and at most one a second for a phase that
 * changes. `now` returns milliseconds of a monotonic clock.
 */
export function showProgress(
  { progress, event: emit }: Pick<CommandContext, 'progress' | 'event'>,
  now: () => number = () => performance.now(),
): (event: MigrationProgress) => void {
  let phase: string | undefined
  let last: string | undefined
  let shownAt = Number.NEGATIVE_INFINITY
  return (event) => {
    emit(event)
    const measured = measure(event)
    const line = measured === undefined ? onceLine(event) : phaseLine(event, measured)
    const isTooSoon = measured?.phase === phase && now() - shownAt < LINE_EVERY_MS
    if (line === undefined || line === last || (measured !== undefined && isTooSoon)) return
    progress(line)
    last = line
    if (measured === undefined) return
    phase = measured.phase
    shownAt = now()
  }
}

function phaseLine({ counts }: MigrationProgress, { phase, done, total }: Measure): string {
  // Those that are not done yet count as staged, in `reconcile` too, which compares users who were reconciled before.
  const shown = phase === 'staging' ? counts : { ...counts, staged: 0 }
  const line = `${phase}: ${formatNumber(done)} of ${formatNumber(total)}`
  return [line, formatCounts(shown)].filter(Boolean).join('; ')
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

/** Returns `undefined` for an event that is not shown. */
function onceLine(event: MigrationProgress): string | undefined {
  const what = WHAT_HAPPENED[event.type]
  if (what === undefined) return undefined
  const batch = event.batch === undefined ? '' : `batch ${formatNumber(event.batch)}: `
  const concerned = event.type === 'preflight' ? event.identities : event.users
  const users = concerned === undefined ? '' : ` (${formatNumber(concerned)})`
  return `${batch}${what}${users}`
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
