import { types } from 'node:util'

/** Puts values on objects where nobody else can read or write them, or see that they are there. */
export interface Stamp<Value> {
  /** `undefined` for what carries none, and for what is no object. */
  get(carrier: unknown): Value | undefined
  set(carrier: object, value: Value): void
}

/**
 * A stamp is a private field. It is for objects that Node makes for each request or response and
 * keeps: on the request or the response itself it would give it a shape of its own, for which every
 * access pays, since V8 does so with each property that is added behind Express's change of the
 * prototype; and a `WeakMap` is work for the garbage collector.
 */
export function createStamp<Value>(): Stamp<Value> {
  return class Stamped extends Given {
    #value: Value | undefined = undefined

    static get(carrier: unknown): Value | undefined {
      return isObject(carrier) && #value in carrier ? (carrier as Stamped).#value : undefined
    }

    static set(carrier: object, value: Value): void {
      const stamped = #value in carrier ? (carrier as Stamped) : new Stamped(carrier)
      stamped.#value = value
    }
  }
}

class Given {
  constructor(carrier: object) {
    // biome-ignore lint/correctness/noConstructorReturn: so that the private field is put on it.
    return carrier
  }
}

export const isObject = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function'

/**
 * Reads a property of an object of a shape that has hardly been seen before, where `Reflect` is the
 * cheaper way. `undefined` for what is no object.
 */
export const peek = (object: unknown, name: string): unknown =>
  isObject(object) ? Reflect.get(object, name) : undefined

/**
 * Whether something is an object or stands for it: a proxy that leads to what it carries, or an object
 * below it. A copy is neither.
 */
export const standsFor = (seen: object, object: object): boolean =>
  seen === object || types.isProxy(seen) || Object.prototype.isPrototypeOf.call(object, seen)
