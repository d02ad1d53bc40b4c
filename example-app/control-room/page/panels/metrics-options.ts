import type uPlot from 'uplot'
import type { Line, Plot } from './metrics-lines.js'
import { SPAN_SECONDS } from './metrics-values.js'

const MS_PER_SECOND = 1000
const SECONDS_PER_MINUTE = 60
const MINUTES_SHOWN = SPAN_SECONDS / SECONDS_PER_MINUTE
const LINE_WIDTH = 2
const POINT_SIZE = 4
const Y_AXIS_WIDTH = 52
const X_AXIS_HEIGHT = 30
/** So that a quiet plot does not make mountains of grains. */
const MIN_TOP = 5
const ROOM_ABOVE = 1.1
const WHOLE_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000]

export interface Wishes {
  readonly plot: Plot
  readonly width: number
  readonly height: number
  /** The value of a custom property of the style sheet, as it is now. */
  readonly colourOf: (property: string) => string
  /** Called with where in the data somebody points. */
  readonly onPoint: (index: number | undefined) => void
}

/** How uPlot draws one of the plots. Colours are asked for whenever it draws. */
export function optionsOf({ plot, width, height, colourOf, onPoint }: Wishes): uPlot.Options {
  const axis = {
    stroke: () => colourOf('--muted'),
    grid: { stroke: () => colourOf('--line'), width: 1 },
    ticks: { stroke: () => colourOf('--line'), width: 1, size: 4 },
    font: '12px system-ui, sans-serif',
  }
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, sync: { key: 'control-room' } },
    scales: {
      x: { time: false, range: (_, __, last) => [last - SPAN_SECONDS, last] },
      y: { range: (_, __, most) => [0, Math.max(MIN_TOP, most * ROOM_ABOVE)] },
    },
    axes: [
      { ...axis, size: X_AXIS_HEIGHT, splits: minutesOf, values: minutesInWords },
      {
        ...axis,
        size: Y_AXIS_WIDTH,
        ...(plot.unit === 'a second' && { incrs: WHOLE_STEPS }),
        values: (_, splits) => splits.map((value) => inUnit(value, plot.unit)),
      },
    ],
    series: [{}, ...plot.lines.map((line) => seriesOf(line, colourOf))],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? undefined)] },
  }
}

function seriesOf({ name, colour, dash }: Line, colourOf: Wishes['colourOf']): uPlot.Series {
  return {
    label: name,
    stroke: () => colourOf(colour),
    dash: [...dash],
    width: LINE_WIDTH,
    // A second with requests between two without would be no line at all.
    points: { filter: lonelyPoints, size: POINT_SIZE, fill: () => colourOf(colour) },
  }
}

/** The values that have no neighbour. */
function lonelyPoints(plot: uPlot, series: number): number[] {
  const values = plot.data[series] ?? []
  return Array.from(values, (_, index) => index).filter((index) => {
    if (values[index] == null) return false
    return values[index - 1] == null && values[index + 1] == null
  })
}

/** Each full minute before the last second. */
function minutesOf({ scales }: uPlot): number[] {
  const last = scales['x']?.max ?? 0
  return Array.from(
    { length: MINUTES_SHOWN + 1 },
    (_, index) => last - (MINUTES_SHOWN - index) * SECONDS_PER_MINUTE,
  )
}

const minutesInWords = (_: uPlot, splits: number[]): string[] =>
  splits.map((_at, index) => (index === MINUTES_SHOWN ? 'now' : `−${MINUTES_SHOWN - index} min`))

function inUnit(value: number, unit: Plot['unit']): string {
  if (unit !== 'ms') return String(value)
  return value < MS_PER_SECOND ? `${value} ms` : `${value / MS_PER_SECOND} s`
}
