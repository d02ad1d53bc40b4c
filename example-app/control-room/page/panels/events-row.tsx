import type { Signal } from '@preact/signals'
import type { RoomEvent } from '../../protocol.js'
import { Badge, type Tone } from '../components/badge.js'
import { Bytes } from '../components/bytes.js'
import { clockTime } from '../components/words.js'
import type { EventsOfRow } from './events-filter.js'

const TONES: Readonly<Record<RoomEvent['level'], Tone>> = {
  info: 'neutral',
  warn: 'refused',
  error: 'failed',
}

export interface EventRowProps extends EventsOfRow {
  /** The number of the event whose details are shown. */
  readonly opened: Signal<number | undefined>
}

/** Drawn again only for another event, or when details are opened: it reads no other signal. */
export function EventRow({ event, times, opened }: EventRowProps) {
  const { number, at, receiver, channel, level, title } = event
  const isOpen = opened.value === number
  return (
    <li class="events-row" data-event={number} data-level={level} data-channel={channel}>
      <button
        type="button"
        class="events-head"
        aria-expanded={isOpen}
        onClick={() => {
          opened.value = isOpen ? undefined : number
        }}
      >
        <time dateTime={new Date(at).toISOString()}>{clockTime(at)}</time>
        <Badge tone={TONES[level]}>{level}</Badge>
        <span class="events-title">
          {title} {times > 1 && `× ${times}, no change`}
          <span class="events-detail">{detailOf(event)}</span>
        </span>
        <span class="muted">
          {channel} · {receiver}
        </span>
      </button>
      {isOpen && (
        <Bytes label={`Event ${number} as JSON`} text={JSON.stringify(event, undefined, 2)} />
      )}
    </li>
  )
}

/** Who and what it was about, as far as the event says. */
function detailOf({ event }: RoomEvent): string {
  const { caller, permission, claim, keyId } = event as Partial<Record<string, string>>
  return [caller, permission, claim, keyId].filter((value) => value !== undefined).join(' · ')
}
