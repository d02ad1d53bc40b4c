import type { EventsMessage, RoomEvent } from '../protocol.js'

/** What is shown first when not all can be shown. */
const BY_WEIGHT = ['fault', 'change', 'refused', 'accepted'] as const satisfies RoomEvent['level'][]

/** Gathers events, and gives as many as can be shown: of those that weigh the same, the last ones. */
export interface Sampler {
  add(event: RoomEvent): void
  /** All since the last time, or a sample of them, in order. */
  take(): EventsMessage
}

export function createSampler(limit: number): Sampler {
  let byLevel = emptyLevels()
  let seen = 0
  return {
    add(event) {
      seen += 1
      const events = byLevel[event.level]
      events.push(event)
      // Trimmed now and then, for a shift of each event would cost more.
      if (events.length >= 2 * limit) events.splice(0, events.length - limit)
    },
    take() {
      const chosen: RoomEvent[] = []
      for (const level of BY_WEIGHT) {
        const room = limit - chosen.length
        if (room > 0) chosen.push(...byLevel[level].slice(-room))
      }
      const leftOut = seen - chosen.length
      byLevel = emptyLevels()
      seen = 0
      return { events: chosen.toSorted((one, other) => one.number - other.number), leftOut }
    },
  }
}

const emptyLevels = (): Record<RoomEvent['level'], RoomEvent[]> => ({
  fault: [],
  change: [],
  refused: [],
  accepted: [],
})
