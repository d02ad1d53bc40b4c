import type { Second } from '../../protocol.js'
import { count, milliseconds } from '../components/words.js'
import type { Line, Plot } from './metrics-lines.js'

const MS_PER_SECOND = 1000
const SECONDS_PER_MINUTE = 60

/** In seconds. */
export const SPAN_SECONDS = 5 * SECONDS_PER_MINUTE

/** Columns as uPlot takes them: the times in seconds, then the values of each line. */
export type Columns = [number[], ...(number | null)[][]]

export function columnsOf(lines: readonly Line[], seconds: readonly Second[]): Columns {
  return [
    seconds.map(({ at }) => at / MS_PER_SECOND),
    ...lines.map(({ read }) => seconds.map((second) => read(second) ?? null)),
  ]
}

/** What the table says of a line; absent where nothing was measured. */
export interface Summary {
  readonly last: number | undefined
  readonly mostOfMinute: number | undefined
  readonly mostOfAll: number | undefined
}

export function summaryOf({ read }: Line, seconds: readonly Second[]): Summary {
  const values = seconds.map(read)
  return {
    last: values.at(-1),
    mostOfMinute: most(values.slice(-SECONDS_PER_MINUTE)),
    mostOfAll: most(values),
  }
}

function most(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}

const NOTHING_MEASURED = '–'

export function valueInWords(value: number | undefined | null, unit: Plot['unit']): string {
  if (value === undefined || value === null) return NOTHING_MEASURED
  return unit === 'ms' ? milliseconds(value) : count(value)
}

/** A plot for those who do not see it. */
export function plotInWords({ title, unit, lines }: Plot, seconds: readonly Second[]): string {
  const values = lines.map(
    (line) => `${line.name} ${valueInWords(summaryOf(line, seconds).last, unit)}`,
  )
  return `${title} in the last five minutes. Last second: ${values.join(', ')}.`
}
