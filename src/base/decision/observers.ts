import { type Channel, channel, subscribe, unsubscribe } from 'node:diagnostics_channel'

/** The diagnostics channels of the package, without their prefix `express-service-auth:`. */
type ChannelName =
  | 'decision'
  | 'keys'
  | 'idempotency'
  | 'denylist'
  | 'store'
  | 'postgres'
  | 'migration'

const fullName = (name: ChannelName): string => `express-service-auth:${name}`

export const openChannel = (name: ChannelName): Channel => channel(fullName(name))

/** Publishes an event, frozen. It is created only if there are subscribers. */
export function publish<Event extends object>(to: Channel, create: () => Event): void {
  if (to.hasSubscribers) to.publish(Object.freeze(create()))
}

/** Calls a function of the app that observes events. Its errors and rejections have no effect. */
export function notify<Event>(observe: (event: Event) => unknown, event: Event): void {
  try {
    const returned = observe(event)
    if (typeof returned === 'object') ignoreRejection(returned)
  } catch {
    // The decision or event is final, whatever an observer throws.
  }
}

/** For the result of a function that must not be async, but may be. Unhandled, its rejection would end the process. */
export function ignoreRejection(returned: unknown): void {
  Promise.resolve(returned).catch(() => {})
}

/** Stops listening; may be called again. */
export type StopListening = () => void

/** Listens to a channel. Errors of the listener have no effect: Node would end the process with them. */
export function listenTo<Event>(
  name: ChannelName,
  listener: (event: Event) => void,
): StopListening {
  const listen = (event: unknown): void => {
    try {
      listener(event as Event)
    } catch {
      // A failing listener must not affect the request.
    }
  }
  subscribe(fullName(name), listen)
  return () => void unsubscribe(fullName(name), listen)
}
