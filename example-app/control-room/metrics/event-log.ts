import type { NewEvent } from '../ports.js'
import type { EventsMessage, RoomEvent } from '../protocol.js'
import { createSampler } from './sample.js'

/** Numbers events, keeps the last ones and sends new ones to subscribers. */
export interface EventLog {
  add(events: readonly NewEvent[]): readonly RoomEvent[]
  /** The last five hundred. */
  last(): EventsMessage
  /** Sends new events, four times a second at most, a sample where there are many; returns its end. */
  subscribe(send: (message: EventsMessage) => void): () => void
  close(): void
}

const KEPT_EVENTS = 500
const EVENTS_AT_ONCE = 50
const PERIOD_MS = 250

export function createEventLog(): EventLog {
  const kept: RoomEvent[] = []
  const subscribers = new Set<(message: EventsMessage) => void>()
  const sampler = createSampler(EVENTS_AT_ONCE)
  let number = 0
  let timer: NodeJS.Timeout | undefined

  function publish(): void {
    timer = undefined
    const message = sampler.take()
    for (const send of subscribers) send(message)
  }

  return {
    add(events) {
      const numbered = events.map((event): RoomEvent => {
        number += 1
        return { ...event, number }
      })
      for (const event of numbered) {
        kept.push(event)
        sampler.add(event)
      }
      if (kept.length >= 2 * KEPT_EVENTS) kept.splice(0, kept.length - KEPT_EVENTS)
      if (numbered.length > 0) timer ??= setTimeout(publish, PERIOD_MS).unref()
      return numbered
    },
    last: () => ({ events: kept.slice(-KEPT_EVENTS), leftOut: 0 }),
    subscribe(send) {
      subscribers.add(send)
      return () => void subscribers.delete(send)
    },
    close: () => clearTimeout(timer),
  }
}
