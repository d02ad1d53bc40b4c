import { subscribe, unsubscribe } from 'node:diagnostics_channel'

/** Stops listening; may be called again. */
export type StopListening = () => void

/**
 * Listens to a channel of the package. What the listener throws has no effect: Node would end the
 * process with it.
 */
export function listenTo<Event>(
  name: 'decision' | 'keys' | 'idempotency' | 'denylist' | 'store' | 'postgres' | 'migration',
  listener: (event: Event) => void,
): StopListening {
  const channel = `express-service-auth:${name}`
  const listen = (event: unknown): void => {
    try {
      listener(event as Event)
    } catch {
      // A failing listener must not affect the request.
    }
  }
  subscribe(channel, listen)
  return () => void unsubscribe(channel, listen)
}
