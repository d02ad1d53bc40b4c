import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { KeySetEvent } from 'express-service-auth'
import { collectEvents } from '../../support/observe/channel-events.js'

const CHANNEL = 'express-service-auth:keys'

/**
 * Collects the events of key sets until the end of the test. The returned function selects those of one key set,
 * because a key set of an earlier test file may still publish events in this process.
 */
export function collectKeySetEvents(): (jwksUri: string) => readonly KeySetEvent[] {
  const events = collectEvents('keys')
  return (jwksUri) => events.filter((event) => event.jwksUri === jwksUri)
}

/** Resolves with the next event of this type for the key set of this server. */
export function nextKeySetEvent(
  type: KeySetEvent['type'],
  { url }: { readonly url: string },
): Promise<KeySetEvent> {
  return new Promise((resolve) => {
    const listen = (message: unknown): void => {
      const event = message as KeySetEvent
      if (event.type !== type || event.jwksUri !== url) return
      unsubscribe(CHANNEL, listen)
      resolve(event)
    }
    subscribe(CHANNEL, listen)
  })
}
