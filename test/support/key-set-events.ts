import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { KeySetEvent } from 'express-service-auth'
import { onTestFinished } from 'vitest'

const CHANNEL = 'express-service-auth:keys'

/** What is announced of key sets from here to the end of the test. */
export function collectKeySetEvents(): readonly KeySetEvent[] {
  const events: KeySetEvent[] = []
  const listen = (event: unknown): void => {
    events.push(event as KeySetEvent)
  }
  subscribe(CHANNEL, listen)
  onTestFinished(() => {
    unsubscribe(CHANNEL, listen)
  })
  return events
}

/** Resolves with the next event of this type. */
export function nextKeySetEvent(type: KeySetEvent['type']): Promise<KeySetEvent> {
  return new Promise((resolve) => {
    const listen = (event: unknown): void => {
      if ((event as KeySetEvent).type !== type) return
      unsubscribe(CHANNEL, listen)
      resolve(event as KeySetEvent)
    }
    subscribe(CHANNEL, listen)
  })
}
