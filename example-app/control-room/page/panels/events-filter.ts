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

/** Goes with its event, so it takes no more memory than the list. */
const searchTexts = new WeakMap<RoomEvent, string>()

function searchedIn(event: RoomEvent): string {
  const known = searchTexts.get(event)
  if (known !== undefined) return known
  const { title, call = '', event: told } = event
  const text = `${title} ${call} ${JSON.stringify(told)}`.toLowerCase()
  searchTexts.set(event, text)
  return text
}
