import type { Second } from '../../protocol.js'
import { act } from '../api.js'
import { NumberChoice } from '../components/number-choice.js'
import { Panel } from '../components/panel.js'
import { count } from '../components/words.js'
import { room, seconds } from '../state.js'
import './metrics.css'
import { Chart } from './metrics-chart.js'
import { type Line, PLOTS, type Plot, STORE_FAILURES } from './metrics-lines.js'
import { summaryOf, valueInWords } from './metrics-values.js'

const CALLS_PER_SECOND = [0, 5, 50, 500]

export function MetricsPanel() {
  return (
    <Panel
      id="metrics"
      title="Metrics"
      about="The last five minutes of both receivers, second by second. Every request is counted."
    >
      <NumberChoice
        label="Calls in the background"
        hint="Good and bad ones of other callers, for these metrics and the events below."
        value={room.value?.backgroundLoad ?? 0}
        values={CALLS_PER_SECOND}
        inWords={(calls) => (calls === 0 ? 'none' : `${count(calls)} a second`)}
        set={(callsPerSecond) => act('background-load', { callsPerSecond })}
      />
      <div class="metrics-figures">
        {PLOTS.map((plot) => (
          <Chart key={plot.id} plot={plot} seconds={seconds.value} />
        ))}
      </div>
      <details class="metrics-table">
        <summary>The same as a table</summary>
        <Table seconds={seconds.value} />
      </details>
    </Panel>
  )
}

function Table({ seconds }: { readonly seconds: readonly Second[] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: What scrolls must be reached by keyboard.
    <section class="scroller" aria-label="Values of the metrics" tabIndex={0}>
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Value</th>
            <th scope="col">Last second</th>
            <th scope="col">Most of a minute</th>
            <th scope="col">Most of five</th>
          </tr>
        </thead>
        <tbody>
          {PLOTS.flatMap((plot) =>
            plot.lines.map((line) => (
              <Row key={`${plot.id} ${line.name}`} plot={plot} line={line} seconds={seconds} />
            )),
          )}
          <Row plot={FAILURES} line={STORE_FAILURES} seconds={seconds} />
        </tbody>
      </table>
    </section>
  )
}

const FAILURES: Pick<Plot, 'title' | 'unit'> = { title: 'Store', unit: 'a second' }

interface RowProps {
  readonly plot: Pick<Plot, 'title' | 'unit'>
  readonly line: Line
  readonly seconds: readonly Second[]
}

function Row({ plot: { title, unit }, line, seconds }: RowProps) {
  const { last, mostOfMinute, mostOfAll } = summaryOf(line, seconds)
  return (
    <tr>
      <th scope="row">
        {title}: {line.name}
      </th>
      <td>{valueInWords(last, unit)}</td>
      <td>{valueInWords(mostOfMinute, unit)}</td>
      <td>{valueInWords(mostOfAll, unit)}</td>
    </tr>
  )
}
