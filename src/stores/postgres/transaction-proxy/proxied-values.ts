import { types } from 'node:util'

/** A value that a membrane can wrap. */
export type Wrappable = object

const HOW_DEEP_PLAIN_OBJECTS_ARE_READ = 2

/**
 * Whether a value may give access to the transaction: every value that has functions, except classes and data
 * such as rows, dates and buffers.
 */
export function leadsToTransaction(value: unknown): value is Wrappable {
  return leads(value, HOW_DEEP_PLAIN_OBJECTS_ARE_READ)
}

function leads(value: unknown, depth: number): boolean {
  if (typeof value === 'function') return !isClass(value)
  if (typeof value !== 'object' || value === null || isData(value)) return false
  // The descriptors of a proxy need not show its members, as in Prisma's lazy queries.
  if (!isPlainObject(value) || types.isProxy(value)) return true
  if (depth === 0) return false
  return Reflect.ownKeys(value).some((key) => {
    const descriptor = Reflect.getOwnPropertyDescriptor(value, key)
    return descriptor !== undefined && (descriptor.get || leads(descriptor.value, depth - 1))
  })
}

/** A native promise counts as data, because it resolves to a result. */
function isData(value: object): boolean {
  return (
    Array.isArray(value) ||
    ArrayBuffer.isView(value) ||
    isNativePromise(value) ||
    types.isDate(value) ||
    types.isNativeError(value) ||
    types.isRegExp(value) ||
    types.isMap(value) ||
    types.isSet(value) ||
    types.isAnyArrayBuffer(value)
  )
}

/** `false` for a subclass: postgres.js sends its queries when their `then` is called. */
export function isNativePromise(value: unknown): value is Promise<unknown> {
  return types.isPromise(value) && Object.getPrototypeOf(value) === Promise.prototype
}

export function isPlainObject(value: unknown): value is Record<PropertyKey, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Also recognises a class that was compiled to a function, by its name or by the members of its prototype. */
function isClass(value: object): boolean {
  if (typeof value !== 'function') return false
  const prototype = Object.getOwnPropertyDescriptor(value, 'prototype')
  if (prototype === undefined) return false
  if (!prototype.writable) return true
  return /^[A-Z]/.test(value.name) || Reflect.ownKeys(Object(prototype.value)).length > 1
}

export function isCallback(value: unknown): value is (...values: unknown[]) => unknown {
  return typeof value === 'function' && !isClass(value)
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  const isObject = typeof value === 'object' && value !== null
  return isObject && typeof (value as { then?: unknown }).then === 'function'
}

/** Functions of TypeORM's managers and repositories that create entities, which are data. */
const MAKES_ENTITIES = new Set<PropertyKey>(['create', 'merge'])

const TAKES_LISTENERS_OFF = new Set<PropertyKey>(['off', 'removeListener'])

/** Whether the result of the call has nothing to do with the transaction. */
export function leadsElsewhere(owner: unknown, name: PropertyKey): boolean {
  // TypeORM: a query runner has its own connection, which its user must release.
  if (name === 'createQueryRunner') return true
  return MAKES_ENTITIES.has(name) && has(owner, 'createQueryBuilder')
}

/** Whether the call only removes a listener, which must also be possible after the end of the transaction. */
export function takesListenerOff(owner: unknown, name: PropertyKey): boolean {
  return TAKES_LISTENERS_OFF.has(name) && has(owner, 'emit')
}

const has = (owner: unknown, name: string): boolean =>
  typeof (Object(owner) as Record<string, unknown>)[name] === 'function'
