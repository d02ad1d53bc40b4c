import { types } from 'node:util'

const PLAIN_OBJECT_DEPTH = 2

/**
 * Whether a value may give access to the transaction: every value that has functions, except classes and data
 * such as rows, dates and buffers.
 */
export function needsProxy(value: unknown): value is object {
  return reachesFunctions(value, PLAIN_OBJECT_DEPTH)
}

function reachesFunctions(value: unknown, depth: number): boolean {
  if (typeof value === 'function') return !isClass(value)
  if (typeof value !== 'object' || value === null || isData(value)) return false
  // The descriptors of a proxy need not show its members, as in Prisma's lazy queries.
  if (!isPlainObject(value) || types.isProxy(value)) return true
  if (depth === 0) return false
  return Reflect.ownKeys(value).some((key) => {
    const descriptor = Reflect.getOwnPropertyDescriptor(value, key)
    return (
      descriptor !== undefined && (descriptor.get || reachesFunctions(descriptor.value, depth - 1))
    )
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

function isPlainObject(value: unknown): value is Record<PropertyKey, unknown> {
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
const ENTITY_FACTORIES = new Set<PropertyKey>(['create', 'merge'])

const LISTENER_REMOVALS = new Set<PropertyKey>(['off', 'removeListener'])

/** Whether the result of the call has nothing to do with the transaction. */
export function isUnrelated(owner: unknown, name: PropertyKey): boolean {
  // TypeORM: a query runner has its own connection, which its user must release.
  if (name === 'createQueryRunner') return true
  return ENTITY_FACTORIES.has(name) && has(owner, 'createQueryBuilder')
}

/** Whether the call only removes a listener, which must also be possible after the end of the transaction. */
export function isListenerRemoval(owner: unknown, name: PropertyKey): boolean {
  return LISTENER_REMOVALS.has(name) && has(owner, 'emit')
}

const has = (owner: unknown, name: string): boolean =>
  typeof (Object(owner) as Record<string, unknown>)[name] === 'function'

/** Only our own proxies return a target for this key. A weak map would cost each request more. */
export const PROXY_TARGET: unique symbol = Symbol('express-service-auth behind')

const OWN: unique symbol = Symbol('express-service-auth own')

interface ProxyTarget {
  readonly own: typeof OWN
  readonly target: object
}

export const proxyTarget = (target: object): ProxyTarget => ({ own: OWN, target })

/** Checks `own`, because a proxy of other code may return a value for any key. */
function targetOf(value: object): object | undefined {
  const member = (value as { readonly [PROXY_TARGET]?: Partial<ProxyTarget> | null })[PROXY_TARGET]
  return member?.own === OWN ? member.target : undefined
}

// Users pass proxies in a list of expressions or an object of columns, and no deeper.
const UNWRAP_DEPTH = 3

export function isProxy(value: object): boolean {
  return targetOf(value) !== undefined
}

/**
 * Replaces our own proxies with their targets, alone or in lists and plain objects, before a
 * value reaches the library. Values without a proxy stay the same objects.
 */
export function unwrap(value: unknown): unknown {
  return unwrapTo(value, UNWRAP_DEPTH)
}

function unwrapTo(value: unknown, depth: number): unknown {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function'
  if (!isObject) return value
  const target = targetOf(value)
  if (target !== undefined) return target
  if (depth === 0) return value
  if (Array.isArray(value)) return unwrapList(value, depth)
  return isPlainObject(value) ? unwrapObject(value, depth) : value
}

function unwrapList(list: readonly unknown[], depth: number): readonly unknown[] {
  // The strings of a tagged template, which libraries recognise by identity.
  if (Object.isFrozen(list)) return list
  const unwrapped = list.map((each) => unwrapTo(each, depth - 1))
  return unwrapped.some((each, index) => each !== list[index]) ? unwrapped : list
}

function unwrapObject(object: Record<PropertyKey, unknown>, depth: number): object {
  const entries = Object.entries(object)
  const unwrapped = entries.map(([name, each]) => [name, unwrapTo(each, depth - 1)] as const)
  const isChanged = unwrapped.some(([, each], index) => each !== entries[index]?.[1])
  return isChanged ? Object.fromEntries(unwrapped) : object
}
