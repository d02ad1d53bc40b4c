import { type InspectOptions, inspect } from 'node:util'
import { textOfParts } from '../../base/digest.js'

const MAX_SHARED = 256
const sharedSets = new Map<string, PermissionSet>()

/**
 * The set of these names. Equal lists share one set: thousands of a service's tokens are cached, and most have the
 * same permissions.
 */
export function permissionSet(names: readonly string[]): PermissionSet {
  const key = textOfParts(names)
  const existing = sharedSets.get(key)
  if (existing !== undefined) return existing
  if (sharedSets.size >= MAX_SHARED) sharedSets.clear()
  const set = new PermissionSet(names)
  sharedSets.set(key, set)
  return set
}

/** Argument of the methods of sets: a `Set`, a `Map`, or an object that can be read like one. */
interface SetLike<T> {
  readonly size: number
  has(value: T): boolean
  keys(): Iterator<T>
}

/**
 * A `ReadonlySet` over a frozen list. It does not extend `Set`, whose `Set.prototype.add` changes even
 * a frozen object. `union` and the like, which `Set` lacks on Node 20, are here because TypeScript
 * promises them for a `ReadonlySet` from `lib: ["ES2025"]` on.
 */
export class PermissionSet implements ReadonlySet<string> {
  /** Each name once. An ordinary property, so that proxies, `deepEqual` and `structuredClone` work. */
  readonly names: readonly string[]

  constructor(names: Iterable<string>) {
    this.names = Object.freeze([...new Set(names)])
    Object.freeze(this)
  }

  get size(): number {
    return this.names.length
  }

  has(name: string): boolean {
    return this.names.includes(name)
  }

  keys(): ArrayIterator<string> {
    return this.names.values()
  }

  values(): ArrayIterator<string> {
    return this.names.values()
  }

  [Symbol.iterator](): ArrayIterator<string> {
    return this.names.values()
  }

  entries(): ArrayIterator<[string, string]> {
    return this.names.map((name): [string, string] => [name, name]).values()
  }

  forEach(
    callback: (value: string, key: string, set: ReadonlySet<string>) => void,
    thisArgument?: unknown,
  ): void {
    for (const name of this.names) callback.call(thisArgument, name, name, this)
  }

  union<T>(other: SetLike<T>): Set<string | T> {
    return new Set<string | T>([...this.names, ...listMembers(other)])
  }

  intersection<T>(other: SetLike<T>): Set<string & T> {
    return new Set(this.names.filter(isIn(other)))
  }

  difference<T>(other: SetLike<T>): Set<string> {
    const isInOther = isIn(other)
    return new Set(this.names.filter((name) => !isInOther(name)))
  }

  symmetricDifference<T>(other: SetLike<T>): Set<string | T> {
    const others = listMembers(other).filter((member) => !this.has(member as string))
    return new Set<string | T>([...this.difference(other), ...others])
  }

  isSubsetOf(other: SetLike<unknown>): boolean {
    return this.names.every(isIn(other))
  }

  isSupersetOf(other: SetLike<unknown>): boolean {
    return listMembers(other).every((member) => this.has(member as string))
  }

  isDisjointFrom(other: SetLike<unknown>): boolean {
    return !this.names.some(isIn(other))
  }

  toJSON(): readonly string[] {
    return this.names
  }
}

function inspectSet(this: PermissionSet, _depth: number, options: InspectOptions): string {
  return `Permission${inspect(new Set(this.names), { ...options, depth: 0 })}`
}

Object.defineProperty(PermissionSet.prototype, inspect.custom, { value: inspectSet })
Object.freeze(PermissionSet.prototype)

function isIn<T>(other: SetLike<T>): (name: string) => name is string & T {
  assertSetLike(other)
  return (name): name is string & T => other.has(name as string & T)
}

/** No `for...of`: `keys()` of an object that is only like a set may return an iterator that is not iterable. */
function listMembers<T>(other: SetLike<T>): T[] {
  assertSetLike(other)
  const members: T[] = []
  const keys = other.keys()
  for (let step = keys.next(); !step.done; step = keys.next()) members.push(step.value)
  return members
}

/** Refuses arrays, too: their `keys()` are indices. */
function assertSetLike(other: SetLike<unknown> | undefined): void {
  const isLike =
    typeof other?.size === 'number' &&
    typeof other.has === 'function' &&
    typeof other.keys === 'function'
  if (!isLike) throw new TypeError('expected a set')
}
