import { isPlainObject } from './handle-values.js'

/** What each proxy of a membrane stands before. */
const TARGETS = new WeakMap<object, object>()

// Users hand proxies over in a list of expressions or an object of columns, and no deeper.
const UNWRAP_DEPTH = 3

export function remember(proxy: object, target: object): void {
  TARGETS.set(proxy, target)
}

export function isProxy(value: object): boolean {
  return TARGETS.has(value)
}

/**
 * What a library must get where a user has a proxy of its own object, alone or in lists and plain
 * objects. Those without a proxy stay the same objects.
 */
export function unwrap(value: unknown): unknown {
  return unwrapTo(value, UNWRAP_DEPTH)
}

function unwrapTo(value: unknown, depth: number): unknown {
  const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function'
  if (!isObject) return value
  const target = TARGETS.get(value)
  if (target) return target
  if (depth === 0) return value
  if (Array.isArray(value)) return unwrapList(value, depth)
  return isPlainObject(value) ? unwrapObject(value, depth) : value
}

function unwrapList(list: readonly unknown[], depth: number): readonly unknown[] {
  // Of a tagged template, which libraries know by identity.
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
