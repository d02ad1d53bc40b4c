import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'

type Listener = (...args: unknown[]) => void

/** Those who wait for a response to take more. */
export interface DrainWatch {
  /** Stops recording listeners: the response flows, and the stream that has them wakes them. */
  stop(): void
  /** Wakes those who wait. */
  wake(): void
}

/**
 * Watches who waits for the response's `drain`. An outer middleware that writes through a stream of
 * its own (compression, say) has replaced `response.on` and keeps their listeners on that stream,
 * where `response.emit` does not reach them: they are noted here.
 */
export function watchDrain(response: ServerResponse): DrainWatch {
  const { on } = response
  if (on === EventEmitter.prototype.on) {
    return { stop() {}, wake: () => void response.emit('drain') }
  }

  const keptElsewhere = new Set<Listener>()
  let isWatching = true
  const noting = function (this: ServerResponse, name: string | symbol, listener: Listener) {
    if (!isWatching) return Reflect.apply(on, this, [name, listener])
    const before = response.listenerCount(name)
    const returned: unknown = Reflect.apply(on, this, [name, listener])
    if (name === 'drain' && response.listenerCount(name) === before) keptElsewhere.add(listener)
    return returned
  } as typeof on
  response.on = noting

  return {
    stop() {
      isWatching = false
      // An inner middleware may have put its own before it since.
      if (response.on === noting) response.on = on
    },
    wake() {
      response.emit('drain')
      for (const listener of keptElsewhere) Reflect.apply(listener, response, [])
      keptElsewhere.clear()
    },
  }
}
