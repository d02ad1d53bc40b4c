import { subscribe } from 'node:diagnostics_channel'
import type {
  DecisionEvent,
  DenylistEvent,
  IdempotencyEvent,
  KeySetEvent,
  StoreEvent,
} from 'express-service-auth'
import type { NewEvent } from '../../ports.js'
import type { ReceiverName } from '../../protocol.js'
import { levelOf, wordOf } from './levels.js'
import { requestContext } from './request-context.js'
import type { Teller } from './teller.js'

/** Tells everything that the channels of the package tell, with the call that it belongs to. */
export function watchChannels(receiver: ReceiverName, teller: Teller): void {
  function tell(told: Pick<NewEvent, 'channel' | 'title' | 'event'>): void {
    const context = requestContext.getStore()
    // What is done on a timer that a request has started is not done for that request any more.
    const isOfRequest = told.channel === 'decision' || told.channel === 'idempotency'
    const call = isOfRequest || context?.hasEnded === false ? context?.call : undefined
    const level = levelOf(told.event)
    teller.event({ at: Date.now(), receiver, level, ...(call !== undefined && { call }), ...told })
  }

  subscribe('express-service-auth:decision', (message) => {
    const event = message as DecisionEvent
    note(event.outcome)
    const title = event.outcome === 'accepted' ? event.outcome : event.reason
    tell({ channel: 'decision', title, event })
  })
  subscribe('express-service-auth:idempotency', (message) => {
    const event = message as IdempotencyEvent
    note(wordOf(event))
    tell({ channel: 'idempotency', title: event.reason, event })
  })
  subscribe('express-service-auth:keys', (message) => {
    const event = message as KeySetEvent
    tell({ channel: 'keys', title: event.type, event })
  })
  subscribe('express-service-auth:denylist', (message) => {
    const event = message as DenylistEvent
    tell({ channel: 'denylist', title: event.type, event })
  })
  subscribe('express-service-auth:store', (message) => teller.storeCall(message as StoreEvent))
}

/** The last word counts: a credential that was refused may be followed by one that is accepted. */
function note(word: ReturnType<typeof wordOf>): void {
  const context = requestContext.getStore()
  if (context !== undefined && word !== undefined) context.word = word
}
