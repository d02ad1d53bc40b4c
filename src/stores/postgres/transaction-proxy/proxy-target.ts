import { isPlainObject } from './proxied-values.js'

/** What a proxy of a membrane answers to, alone of all objects: a weak map would cost each request more. */
export const BEHIND: unique symbol = Symbol('express-service-auth behind')

const OWN: unique symbol = Symbol('express-service-auth own')

/** What a proxy stands before. */
interface Behind {
  readonly own: typeof OWN
  readonly target: object
}

export const behind = (target: object): Behind => ({ own: OWN, target })

/** Another's proxy may answer to anything. */
function targetOf(value: object): object | undefined {
  const found = (value as { readonly [BEHIND]?: Partial<Behind> | null })[BEHIND]
  return found?.own === OWN ? found.target : undefined
}

// Users hand proxies over in a list of expressions or an object of columns, and no deeper.
const UNWRAP_DEPTH = 3

export function isProxy(value: object): boolean {
  return targetOf(value) !== undefined
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
  const target = targetOf(value)
  if (target !== undefined) return target
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
