import { setTimeout as delay } from 'node:timers/promises'
import type { EndedRequest } from '../ports.js'
import type { Outcome, RoomEvent } from '../protocol.js'

/** What receivers have reported of a call. */
export interface CallReport {
  readonly events: readonly RoomEvent[]
  /** Absent until the receiver has reported the end of the request. */
  readonly outcome?: Outcome
}

/** Gathers what receivers report of the calls under way. */
export interface CallEvents {
  receive(events: readonly RoomEvent[], requests: readonly EndedRequest[]): void
  /** Gathers the reports of this call from now on. */
  expect(call: string): ExpectedCall
}

export interface ExpectedCall {
  /** Resolves with what was reported once the request has ended, or when the time is over. */
  report(limitMs: number): Promise<CallReport>
  /** Lets go of the call. */
  forget(): void
}

interface Gathered {
  readonly events: RoomEvent[]
  outcome?: Outcome
  readonly ended: Promise<void>
  readonly end: () => void
}

/** A call has a dozen events at most. */
const MAX_EVENTS = 100
/** More than are ever under way; of calls that nobody asks about, the oldest go. */
const MAX_CALLS = 1000

export function createCallEvents(): CallEvents {
  const calls = new Map<string, Gathered>()
  return {
    receive(events, requests) {
      for (const event of events) {
        const gathered = event.call === undefined ? undefined : calls.get(event.call)
        if (gathered && gathered.events.length < MAX_EVENTS) gathered.events.push(event)
      }
      for (const { call, outcome } of requests) {
        const gathered = call === undefined ? undefined : calls.get(call)
        if (gathered === undefined) continue
        gathered.outcome = outcome
        gathered.end()
      }
    },
    expect(call) {
      const gathered = newGathered()
      calls.set(call, gathered)
      const [oldest] = calls.keys()
      if (calls.size > MAX_CALLS && oldest !== undefined) calls.delete(oldest)
      return {
        async report(limitMs) {
          const waiting = new AbortController()
          const limit = delay(limitMs, undefined, { signal: waiting.signal }).catch(() => undefined)
          await Promise.race([gathered.ended, limit])
          waiting.abort()
          const { events, outcome } = gathered
          return { events: [...events], ...(outcome !== undefined && { outcome }) }
        },
        forget: () => void calls.delete(call),
      }
    },
  }
}

function newGathered(): Gathered {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  return { events: [], ended, end }
}
