import type { KeySetEvent, KeySetHealth } from 'express-service-auth'
import type { NewEvent } from '../ports.js'
import type { ReceiverState } from '../protocol.js'

type Line = ReceiverState['keySetLine']
type Watched = Pick<ReceiverState, 'keySetLine' | 'keySetFetches' | 'budgetExhaustedAt'>

/** What a receiver's key set has been through; of a killed one, it is cold. */
export interface KeySetWatch {
  enter(state: KeySetHealth['state']): void
  note(event: NewEvent): void
  state(): Watched
}

const LINE_MS = 300_000

export function createKeySetWatch(clock: () => number = Date.now): KeySetWatch {
  let line: Line = []
  let fetched = 0
  let failed = 0
  let budgetExhaustedAt: number | undefined

  return {
    enter(state) {
      if (line.at(-1)?.state !== state) line = [...line, { since: clock(), state }]
      line = within(line, clock() - LINE_MS)
    },
    note({ channel, event, at }) {
      if (channel !== 'keys') return
      const { type } = event as KeySetEvent
      if (type === 'fetched' || type === 'not_modified') fetched += 1
      if (type === 'failed') failed += 1
      if (type === 'budget_exhausted') budgetExhaustedAt = at
    },
    state: () => ({
      keySetLine: within(line, clock() - LINE_MS),
      keySetFetches: { fetched, failed },
      ...(budgetExhaustedAt !== undefined && { budgetExhaustedAt }),
    }),
  }
}

/** The line from a moment on: what had begun earlier begins there. */
function within(line: Line, from: number): Line {
  const isOver = (index: number): boolean => (line[index + 1]?.since ?? from + 1) <= from
  return line
    .filter((_, index) => !isOver(index))
    .map(({ since, state }) => ({ since: Math.max(since, from), state }))
}
