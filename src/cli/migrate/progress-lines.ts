import type { MigrationProgress } from '../../migration/run/progress.js'
import { durationInWords } from '../output/format-time.js'
import { countsInWords, numberInWords } from './format-counts.js'
import type { Measure } from './phase-progress.js'

const WHAT_HAPPENED: Readonly<Partial<Record<MigrationProgress['type'], string>>> = {
  preflight: 'preflight',
  batch_rejected: 'the core rejects users of a batch',
  reply_lost: 'no reply: whether the core has done it is looked up',
  reply_resolved: 'the lost reply is resolved',
  row_failed: 'rows have failed',
  rows_deleted: 'rows deleted',
  settled: 'users of deleted rows looked up or imported',
  corrected: 'corrections applied',
}

/** For a log; `undefined` where there is nothing to say. */
export function plainLine(
  event: MigrationProgress,
  measured: Measure | undefined,
): string | undefined {
  if (measured !== undefined) {
    const counts = countsInWords(event.counts)
    return [`${measured.phase}: ${progressOf(measured)}`, counts].filter(Boolean).join('; ')
  }
  const what = WHAT_HAPPENED[event.type]
  if (what === undefined) return undefined
  const batch = event.batch === undefined ? '' : `batch ${numberInWords(event.batch)}: `
  const concerned = event.type === 'preflight' ? event.identities : event.users
  const users = concerned === undefined ? '' : ` (${numberInWords(concerned)})`
  return `${batch}${what}${users}`
}

const progressOf = ({ done, total }: Measure): string =>
  `${numberInWords(done)} of ${numberInWords(total)}`

const BAR_WIDTH = 20

interface Bar {
  readonly measured: Measure
  /** A second. */
  readonly rate: number | undefined
  readonly counts: readonly string[]
  readonly columns: number
}

const GAP = '  '

/** One line for a terminal. A part that does not fit is left out: half a number would be a wrong number. */
export function barLine({ measured, rate, counts, columns }: Bar): string {
  const { phase, done, total } = measured
  const share = total === 0 ? 1 : done / total
  const filled = Math.floor(share * BAR_WIDTH)
  const bar = `[${'#'.repeat(filled)}${'-'.repeat(BAR_WIDTH - filled)}]`
  const progress = progressOf(measured)
  const beginnings = [
    [`${phase.padEnd('reconciling'.length)} ${bar}`, progress].join(GAP),
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

/** A full last column would break the line. */
export const fits = (line: string, columns: number): boolean => line.length < columns

const rateInWords = (rate: number): string =>
  rate < 1 ? `${numberInWords(Math.round(rate * 60))}/min` : `${numberInWords(Math.round(rate))}/s`

const timeLeft = ({ done, total }: Measure, rate: number): string =>
  `${durationInWords((total - done) / rate)} left`
