import {
  type ReadonlySignal,
  type Signal,
  useComputed,
  useSignal,
  useSignalEffect,
} from '@preact/signals'
import type { RoomEvent } from '../../protocol.js'
import { Empty } from '../components/empty.js'
import { Panel } from '../components/panel.js'
import { count, plural } from '../components/words.js'
import { events, leftOut } from '../state.js'
import './events.css'
import { EventControls } from './events-controls.js'
import { type EventFilter, filtered, NO_FILTER, rowsOf } from './events-filter.js'
import { useEachFrame } from './events-frame.js'
import { EventRow } from './events-row.js'

/** Rows at first; whoever wants more asks for them. */
const ROWS_AT_FIRST = 25

export function EventsPanel() {
  return (
    <Panel
      id="events"
      title="Events"
      about="What the receivers have published on the channels of the package, the newest first. At many calls a second this list is a sample; totals and metrics are not."
    >
      <Events />
    </Panel>
  )
}

function Events() {
  const filter = useSignal<EventFilter>(NO_FILTER)
  const opened = useSignal<number | undefined>(undefined)
  const paused = useSignal<readonly RoomEvent[] | undefined>(undefined)
  const isWhole = useSignal(false)
  const newest = useEachFrame(events)
  const found = useComputed(() => filtered(paused.value ?? newest.value, filter.value)).value
  const rows = rowsOf(found)
  useSignalEffect(() => {
    // Whoever reads does not want the list to move.
    if (opened.value !== undefined) paused.value ??= newest.peek()
  })

  return (
    <>
      <EventControls filter={filter} />
      <Pause newest={newest} paused={paused} />
      <p class="muted" data-left-out={leftOut.value}>
        {countInWords(found.length, (paused.value ?? newest.value).length)}{' '}
        {leftOut.value > 0 && `A sample: ${count(leftOut.value)} more were left out.`}
      </p>
      {rows.length === 0 && <Empty>No such event yet.</Empty>}
      <ol class="events-list">
        {rows.slice(0, isWhole.value ? rows.length : ROWS_AT_FIRST).map((row) => (
          <EventRow key={row.event.number} {...row} opened={opened} />
        ))}
      </ol>
      {rows.length > ROWS_AT_FIRST && (
        <button
          type="button"
          class="button events-more"
          onClick={() => {
            isWhole.value = !isWhole.value
          }}
        >
          {isWhole.value ? `Show ${ROWS_AT_FIRST} only` : `Show all ${count(rows.length)}`}
        </button>
      )}
    </>
  )
}

const countInWords = (found: number, all: number): string =>
  found === all ? `The last ${plural(all, 'event')}.` : `${count(found)} of the last ${count(all)}.`

interface PauseProps {
  readonly newest: ReadonlySignal<readonly RoomEvent[]>
  /** The list as it was when somebody began to read. */
  readonly paused: Signal<readonly RoomEvent[] | undefined>
}

function Pause({ newest, paused }: PauseProps) {
  const isPaused = paused.value !== undefined
  const waiting = numberOf(newest.value) - numberOf(paused.value ?? newest.value)
  return (
    <div class="row">
      <button
        type="button"
        class="button"
        onClick={() => {
          paused.value = isPaused ? undefined : newest.peek()
        }}
      >
        {isPaused ? 'Resume' : 'Pause'}
      </button>
      <span data-paused={isPaused}>
        {isPaused ? `Paused; ${count(Math.max(0, waiting))} newer.` : 'The newest come first.'}
      </span>
    </div>
  )
}

const numberOf = (list: readonly RoomEvent[]): number => list[0]?.number ?? 0
