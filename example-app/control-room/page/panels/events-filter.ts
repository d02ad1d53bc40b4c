import type { RoomEvent } from '../../protocol.js'

/** An empty string lets everything through. */
export interface EventFilter {
  readonly channel: RoomEvent['channel'] | ''
  readonly level: RoomEvent['level'] | ''
  readonly receiver: RoomEvent['receiver'] | ''
  readonly text: string
}

export const NO_FILTER: EventFilter = { channel: '', level: '', receiver: '', text: '' }

export function filtered(
  events: readonly RoomEvent[],
  { channel, level, receiver, text }: EventFilter,
): readonly RoomEvent[] {
  const wanted = text.trim().toLowerCase()
  return events.filter(
    (event) =>
      (channel === '' || event.channel === channel) &&
      (level === '' || event.level === level) &&
      (receiver === '' || event.receiver === receiver) &&
      (wanted === '' || searchedIn(event).includes(wanted)),
  )
}

/** An event, or the newest of several that changed nothing. */
export interface EventsOfRow {
  readonly event: RoomEvent
  readonly times: number
}

/** One row for each event, but only one for all of a kind that changed nothing. */
export function rowsOf(events: readonly RoomEvent[]): readonly EventsOfRow[] {
  const rows = new Map<string | number, EventsOfRow>()
  for (const event of events) {
    const name = changesNothing(event) ? `${event.channel} ${event.title}` : event.number
    const { event: newest, times } = rows.get(name) ?? { event, times: 0 }
    rows.set(name, { event: newest, times: times + 1 })
  }
  return [...rows.values()]
}

/** As a fetch that has found the same keys. */
function changesNothing({ event }: RoomEvent): boolean {
  if (!('type' in event)) return false
  if (event.type === 'changed') return event.added + event.removed === 0
  if (event.type !== 'fetched') return event.type === 'not_modified'
  return event.added.length + event.replaced.length + event.removed.length === 0
}

/** Goes with its event, so it takes no more memory than the list. */
const searchTexts = new WeakMap<RoomEvent, string>()

function searchedIn(event: RoomEvent): string {
  const known = searchTexts.get(event)
  if (known !== undefined) return known
  const { title, call = '', event: fields } = event
  const text = `${title} ${call} ${JSON.stringify(fields)}`.toLowerCase()
  searchTexts.set(event, text)
  return text
}
