import type { EventsMessage, RoomEvent } from '../protocol.js'

/** The rank by which events are shown when not all can be: changes of keys and of the denylist are rare. */
function rankOf({ level, channel }: RoomEvent): number {
  if (level === 'error') return 0
  if (channel === 'keys' || channel === 'denylist') return 1
  return level === 'warn' ? 2 : 3
}

/** Gathers events, and gives as many as can be shown: of those that weigh the same, the last ones. */
export interface Sampler {
  add(event: RoomEvent): void
  /** All since the last time, or a sample of them, in order. */
  take(): EventsMessage
}

export function createSampler(limit: number): Sampler {
  let byRank = emptyRanks()
  let seen = 0
  return {
    add(event) {
      seen += 1
      const events = byRank[rankOf(event)] ?? []
      events.push(event)
      // Trimmed now and then, for a shift of each event would cost more.
      if (events.length >= 2 * limit) events.splice(0, events.length - limit)
    },
    take() {
      const chosen: RoomEvent[] = []
      for (const events of byRank) {
        const room = limit - chosen.length
        if (room > 0) chosen.push(...events.slice(-room))
      }
      const leftOut = seen - chosen.length
      byRank = emptyRanks()
      seen = 0
      return { events: chosen.toSorted((one, other) => one.number - other.number), leftOut }
    },
  }
}

const emptyRanks = (): RoomEvent[][] => [[], [], [], []]
