import { isPlainObject } from './proxied-values.js'

/** Only the proxies of a membrane return a target for this key. A weak map would cost each request more. */
export const BEHIND: unique symbol = Symbol('express-service-auth behind')

const OWN: unique symbol = Symbol('express-service-auth own')

interface Behind {
  readonly own: typeof OWN
  readonly target: object
}

export const behind = (target: object): Behind => ({ own: OWN, target })

/** Checks `own`, because a proxy of other code may return a value for any key. */
function targetOf(value: object): object | undefined {
  const found = (value as { readonly [BEHIND]?: Partial<Behind> | null })[BEHIND]
  return found?.own === OWN ? found.target : undefined
}

// Users pass proxies in a list of expressions or an object of columns, and no deeper.
const UNWRAP_DEPTH = 3

export function isProxy(value: object): boolean {
  return targetOf(value) !== undefined
}

/**
 * Replaces the proxies of a membrane with their targets, alone or in lists and plain objects, before a
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
