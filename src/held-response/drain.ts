import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'

type Listener = (...args: unknown[]) => void

/**
 * Returns a function that wakes those who wait for the response's `drain`. An outer middleware that
 * writes through a stream of its own (compression, say) keeps their listeners there, where
 * `response.emit` does not reach them.
 */
export function watchDrain(response: ServerResponse): () => void {
  const { on } = response
  if (on === EventEmitter.prototype.on) return () => void response.emit('drain')

  const waiting = new Set<Listener>()
  response.on = ((name: string | symbol, listener: Listener) => {
    if (name === 'drain') waiting.add(listener)
    return Reflect.apply(on, response, [name, listener])
  }) as typeof on

  return () => {
    response.on = on
    const reached = new Set<unknown>(response.rawListeners('drain'))
    response.emit('drain')
    for (const listener of waiting)
      if (!reached.has(listener)) Reflect.apply(listener, response, [])
    waiting.clear()
  }
}
