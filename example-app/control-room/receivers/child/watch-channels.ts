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
import type { Reporter } from './reporter.js'
import { requestContext } from './request-context.js'

/** Reports everything on the package's channels, with the call that it belongs to. */
export function watchChannels(receiver: ReceiverName, reporter: Reporter): void {
  function report(event: Pick<NewEvent, 'channel' | 'title' | 'event'>): void {
    const context = requestContext.getStore()
    // What is done on a timer that a request has started is not done for that request any more.
    const isOfRequest = event.channel === 'decision' || event.channel === 'idempotency'
    const call = isOfRequest || context?.hasEnded === false ? context?.call : undefined
    const level = levelOf(event.event)
    reporter.event({
      at: Date.now(),
      receiver,
      level,
      ...(call !== undefined && { call }),
      ...event,
    })
  }

  subscribe('express-service-auth:decision', (message) => {
    const event = message as DecisionEvent
    note(event.outcome)
    const title = event.outcome === 'accepted' ? event.outcome : event.reason
    report({ channel: 'decision', title, event })
  })
  subscribe('express-service-auth:idempotency', (message) => {
    const event = message as IdempotencyEvent
    note(wordOf(event))
    report({ channel: 'idempotency', title: event.reason, event })
  })
  subscribe('express-service-auth:keys', (message) => {
    const event = message as KeySetEvent
    report({ channel: 'keys', title: event.type, event })
  })
  subscribe('express-service-auth:denylist', (message) => {
    const event = message as DenylistEvent
    report({ channel: 'denylist', title: event.type, event })
  })
  subscribe('express-service-auth:store', (message) => reporter.storeCall(message as StoreEvent))
}

/** The last word counts: a credential that was refused may be followed by one that is accepted. */
function note(word: ReturnType<typeof wordOf>): void {
  const context = requestContext.getStore()
  if (context !== undefined && word !== undefined) context.word = word
}
