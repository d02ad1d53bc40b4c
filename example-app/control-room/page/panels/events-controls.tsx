import type { Signal } from '@preact/signals'
import { RECEIVERS, type RoomEvent } from '../../protocol.js'
import { Field } from '../components/field.js'
import type { EventFilter } from './events-filter.js'

const CHANNELS: readonly RoomEvent['channel'][] = ['decision', 'idempotency', 'keys', 'denylist']
const LEVELS: readonly RoomEvent['level'][] = ['info', 'warn', 'error']
const EVENT_SOURCES: readonly RoomEvent['receiver'][] = [...RECEIVERS, 'story']

/** What of the list is shown. */
export function EventControls({ filter }: { readonly filter: Signal<EventFilter> }) {
  return (
    <search class="grid" aria-label="Filter events">
      <One filter={filter} label="Channel" name="channel" values={CHANNELS} />
      <One filter={filter} label="Level" name="level" values={LEVELS} />
      <One filter={filter} label="Receiver" name="receiver" values={EVENT_SOURCES} />
      <Field label="Text">
        <input
          type="search"
          placeholder="reason, key …"
          value={filter.value.text}
          onInput={({ currentTarget }) => {
            filter.value = { ...filter.value, text: currentTarget.value }
          }}
        />
      </Field>
    </search>
  )
}

interface OneProps {
  readonly filter: Signal<EventFilter>
  readonly label: string
  readonly name: Exclude<keyof EventFilter, 'text'>
  readonly values: readonly string[]
}

function One({ filter, label, name, values }: OneProps) {
  return (
    <Field label={label}>
      <select
        value={filter.value[name]}
        onChange={({ currentTarget }) => {
          filter.value = { ...filter.value, [name]: currentTarget.value }
        }}
      >
        <option value="">all</option>
        {values.map((value) => (
          <option key={value} value={value}>
            {value}
          </option>
        ))}
      </select>
    </Field>
  )
}
