import { batch, signal } from '@preact/signals'
import type {
  CatalogueMessage,
  EventsMessage,
  HostileTokenCase,
  RoomEvent,
  RoomState,
  Second,
  SecondsMessage,
} from '../protocol.js'

/**
 * `crowded`: the room has as many pages as it takes. `shut-out`: it answers, but not to the key in this
 * page's address.
 */
export type Connection = 'connecting' | 'live' | 'lost' | 'crowded' | 'shut-out'

const SECONDS_SHOWN = 300
const EVENTS_SHOWN = 500
const TICK_MS = 250

export const connection = signal<Connection>('connecting')

/** What the room said last; undefined before it has said anything. */
export const room = signal<RoomState | undefined>(undefined)

/** Undefined before the room has sent them. */
export const hostileTokens = signal<readonly HostileTokenCase[] | undefined>(undefined)

/** The last five minutes, the oldest first. */
export const seconds = signal<readonly Second[]>([])

/** A sample of the events of the receivers, the newest first. */
export const events = signal<readonly RoomEvent[]>([])

/** How many events the room has left out since this connection was made. */
export const leftOut = signal(0)

/** The time by the server's clock; it ticks while the page can be seen. */
export const now = signal(Date.now())

/** How far the server's clock is ahead of the browser's. */
let aheadMs = 0

export function tookCatalogue(message: CatalogueMessage): void {
  hostileTokens.value = message.hostileTokens
}

export function tookState(state: RoomState): void {
  aheadMs = state.now - Date.now()
  batch(() => {
    room.value = state
    now.value = state.now
  })
}

/** What comes first on a connection is all that there is, and takes the place of what was here. */
export function tookSeconds(message: SecondsMessage, isFirst: boolean): void {
  const all = isFirst ? message.seconds : [...seconds.value, ...message.seconds]
  seconds.value = all.slice(-SECONDS_SHOWN)
}

export function tookEvents(message: EventsMessage, isFirst: boolean): void {
  const newest = [...message.events].sort((one, other) => other.number - one.number)
  batch(() => {
    events.value = (isFirst ? newest : [...newest, ...events.value]).slice(0, EVENTS_SHOWN)
    leftOut.value = (isFirst ? 0 : leftOut.value) + message.leftOut
  })
}

export function startClock(): void {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now() + aheadMs
  }, TICK_MS)
}
