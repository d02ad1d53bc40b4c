import { createEventLog } from './metrics/event-log.js'
import { type Metrics, openMetrics } from './metrics/metrics.js'
import type { ReceiverReport, Room } from './ports.js'
import type { EventsMessage, RoomEvent, RoomState } from './protocol.js'

/** What pages get: the state, the seconds and the events. */
export interface Feed extends Pick<Room, 'subscribe'>, Pick<Metrics, 'totals'> {
  /** Takes the report of a receiver; returns its events with their numbers. */
  receive(report: ReceiverReport): readonly RoomEvent[]
  /** The state is another now. */
  changed(): void
  close(): void
}

/** The state is sent four times a second at most. */
const PERIOD_MS = 250

export function openFeed(stateOfNow: () => RoomState): Feed {
  const log = createEventLog()
  const metrics = openMetrics()
  const states = new Set<(state: RoomState) => void>()
  let sentAt = 0
  let timer: NodeJS.Timeout | undefined

  function publishState(): void {
    timer = undefined
    sentAt = performance.now()
    if (states.size === 0) return
    const state = stateOfNow()
    for (const send of states) send(state)
  }

  function changed(): void {
    timer ??= setTimeout(publishState, Math.max(0, sentAt + PERIOD_MS - performance.now())).unref()
  }

  return {
    receive(report) {
      metrics.receive(report)
      changed()
      return log.add(report.events)
    },
    changed,
    totals: metrics.totals,
    subscribe(send) {
      const kept = log.last()
      send('state', stateOfNow())
      send('seconds', { seconds: metrics.last() })
      send('events', kept)
      const sendState = (state: RoomState): void => send('state', state)
      states.add(sendState)
      const ends = [
        () => states.delete(sendState),
        metrics.subscribe((seconds) => send('seconds', { seconds })),
        log.subscribe(afterThose(kept, (message) => send('events', message))),
      ]
      return () => {
        for (const end of ends) end()
      }
    },
    close() {
      clearTimeout(timer)
      metrics.close()
      log.close()
    },
  }
}

/** Leaves out what was among those that were sent first. */
function afterThose(first: EventsMessage, send: (message: EventsMessage) => void) {
  const last = first.events.at(-1)?.number ?? 0
  return ({ events, leftOut }: EventsMessage): void => {
    send({ events: events.filter(({ number }) => number > last), leftOut })
  }
}
