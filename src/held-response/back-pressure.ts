import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'

type Listener = (...args: unknown[]) => void

/**
 * Returns a function that wakes those who wait for the response's `drain`. An outer middleware that
 * writes through a stream of its own (compression, say) has replaced `response.on` and keeps their
 * listeners on that stream, where `response.emit` does not reach them: they are noted here.
 */
export function watchDrain(response: ServerResponse): () => void {
  const { on } = response
  if (on === EventEmitter.prototype.on) return () => void response.emit('drain')

  const keptElsewhere = new Set<Listener>()
  response.on = function (this: ServerResponse, name: string | symbol, listener: Listener) {
    const before = response.listenerCount(name)
    const returned: unknown = Reflect.apply(on, this, [name, listener])
    if (name === 'drain' && response.listenerCount(name) === before) keptElsewhere.add(listener)
    return returned
  } as typeof on

  return () => {
    response.on = on
    response.emit('drain')
    for (const listener of keptElsewhere) Reflect.apply(listener, response, [])
    keptElsewhere.clear()
  }
}
