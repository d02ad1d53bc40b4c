import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { Second } from '../../protocol.js'
import { clockTime } from '../components/words.js'
import type { Plot } from './metrics-lines.js'
import { optionsOf } from './metrics-options.js'
import { columnsOf, plotInWords, valueInWords } from './metrics-values.js'

const HEIGHT = 190
const DARK = '(prefers-color-scheme: dark)'

export interface ChartProps {
  readonly plot: Plot
  readonly seconds: readonly Second[]
}

/** A plot with its legend, which shows the last values, or those to which somebody points. */
export function Chart({ plot, seconds }: ChartProps) {
  const pointedAt = useSignal<number | undefined>(undefined)
  const box = useRef<HTMLDivElement>(null)
  const drawn = useRef<uPlot>(undefined)
  const second = seconds[pointedAt.value ?? seconds.length - 1]

  useEffect(() => {
    if (!box.current) return
    const chart = draw(box.current, plot, (index) => {
      pointedAt.value = index
    })
    drawn.current = chart.plot
    return chart.end
  }, [plot, pointedAt])

  useEffect(() => {
    drawn.current?.setData(columnsOf(plot.lines, seconds))
  }, [plot, seconds])

  return (
    <figure class="stack" data-plot={plot.id}>
      <figcaption>
        <h3>{plot.title}</h3>
        <span class="muted">
          {second && (pointedAt.value === undefined ? 'last second' : clockTime(second.at))}
        </span>
      </figcaption>
      <div class="metrics-chart" ref={box} role="img" aria-label={plotInWords(plot, seconds)} />
      <ul class="facts">
        {plot.lines.map(({ name, colour, dash, read }) => (
          <li key={name} data-line={name}>
            <svg class="metrics-sample" viewBox="0 0 28 8" aria-hidden="true">
              <line
                style={{ stroke: `var(${colour})` }}
                x1="0"
                x2="28"
                y1="4"
                y2="4"
                stroke-dasharray={dash.join(' ')}
              />
            </svg>
            {name} <strong>{valueInWords(second && read(second), plot.unit)}</strong>
          </li>
        ))}
      </ul>
    </figure>
  )
}

/** Draws into the box until `end`, as wide as it is and in the colours of the theme. */
function draw(box: HTMLElement, plot: Plot, onPoint: (index: number | undefined) => void) {
  const style = getComputedStyle(box)
  const colourOf = (property: string) => style.getPropertyValue(property)
  const width = Math.max(1, box.clientWidth)
  const drawn = new uPlot(
    optionsOf({ plot, width, height: HEIGHT, colourOf, onPoint }),
    columnsOf(plot.lines, []),
    box,
  )
  const watch = new ResizeObserver(() => drawn.setSize({ width: box.clientWidth, height: HEIGHT }))
  watch.observe(box)
  const theme = matchMedia(DARK)
  const redraw = () => drawn.redraw()
  theme.addEventListener('change', redraw)

  function end(): void {
    theme.removeEventListener('change', redraw)
    watch.disconnect()
    drawn.destroy()
  }

  return { plot: drawn, end }
}
