import { IncomingMessage } from 'node:http'
import type { Request } from 'express'
import { type RequestState, streamStateOf } from './request-state.js'

type Name = 'service' | 'idempotency'

/** A property of requests that shows a part of what guards know of them. */
export interface RequestProperty {
  /** To be called before the first request. */
  place(): void
  /** To be called whenever what it shows has changed. */
  show(state: RequestState): void
}

/**
 * The property stands in the prototype of all requests, where it is undefined for those that have
 * nothing to show: V8 gives a request a shape of its own with each property that is added behind
 * Express's change of its prototype, and every access pays for that. Whoever assigns it makes a
 * plain property of the one request, as if there were none in the prototype.
 */
export function requestProperty<N extends Name>(
  name: N,
  valueIn: (state: RequestState) => Request[N],
): RequestProperty {
  let isPlaced = false

  function place(): void {
    if (isPlaced || Object.hasOwn(IncomingMessage.prototype, name)) return
    isPlaced = Reflect.defineProperty(IncomingMessage.prototype, name, {
      configurable: true,
      get(this: object) {
        const state = streamStateOf(this)
        return state === undefined ? undefined : valueIn(state)
      },
      set(this: object, value: unknown) {
        define(this, name, value)
      },
    })
  }

  return {
    place,
    show(state) {
      const { request } = state
      const isReached = isPlaced && findOwner(request, name) === IncomingMessage.prototype
      if (!isReached || streamStateOf(request) !== state) define(request, name, valueIn(state))
    },
  }
}

/** Which of a request and its prototypes a property would be read from. */
function findOwner(request: object, name: Name): object | null {
  let at: object | null = request
  while (at !== null && !Object.hasOwn(at, name)) at = Object.getPrototypeOf(at)
  return at
}

const define = (request: object, name: Name, value: unknown): void => {
  const plain = { configurable: true, enumerable: true, writable: true }
  Object.defineProperty(request, name, { ...plain, value })
}
