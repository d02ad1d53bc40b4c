import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import type { RequestListener } from 'node:http'
import type { DecisionEvent, IdempotencyEvent } from 'express-service-auth'

/** The header that tells a call of the page from others. */
export const CALL_HEADER = 'x-room-call'

export type Verdict = DecisionEvent | IdempotencyEvent

export interface SeenEvent {
  /** Counts up from 1. */
  readonly number: number
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly channel: string
  readonly event: object
}

/** What became of one request. */
export interface Decision {
  readonly at: number
  readonly outcome: Verdict['outcome']
}

export interface Watch {
  /** Stands around a receiver, so that its events are those of a request. */
  readonly around: (app: RequestListener) => RequestListener
  /** The last 50, oldest first. */
  events(): readonly SeenEvent[]
  /** Those of the last minute. */
  decisions(): readonly Decision[]
  /** What was decided on the call with this number, in order; forgets it. */
  verdictsOf(call: string): readonly Verdict[]
}

const CHANNELS = ['decision', 'idempotency', 'keys', 'denylist']
const MAX_EVENTS = 50
const MINUTE_MS = 60_000

/** Watches the receivers of this process through the diagnostics channels of the package. */
export function startWatch(): Watch {
  const current = new AsyncLocalStorage<Verdict[]>()
  const calls = new Map<string, Verdict[]>()
  const events: SeenEvent[] = []
  let decisions: Decision[] = []
  let number = 0

  for (const channel of CHANNELS) {
    subscribe(`express-service-auth:${channel}`, (event) => {
      // A channel publishes within the request that it is about.
      if (channel === 'decision' || channel === 'idempotency') {
        current.getStore()?.push(event as Verdict)
      }
      number += 1
      events.push({ number, at: Date.now(), channel, event: event as object })
      if (events.length > MAX_EVENTS) events.shift()
    })
  }

  return {
    around: (app) => (request, response) => {
      const verdicts: Verdict[] = []
      const call = request.headers[CALL_HEADER]
      if (typeof call === 'string') calls.set(call, verdicts)
      response.once('close', () => {
        const last = endOf(verdicts) ?? verdicts.at(-1)
        if (last) decisions.push({ at: Date.now(), outcome: last.outcome })
      })
      current.run(verdicts, () => app(request, response))
    },
    events: () => events,
    decisions() {
      decisions = decisions.filter(({ at }) => at > Date.now() - MINUTE_MS)
      return decisions
    },
    verdictsOf(call) {
      const verdicts = calls.get(call) ?? []
      calls.delete(call)
      return verdicts
    },
  }
}

/** The verdict that has turned a request away, or could not be reached. */
export const endOf = (verdicts: readonly Verdict[]): Verdict | undefined =>
  verdicts.find(({ outcome }) => outcome !== 'accepted')
