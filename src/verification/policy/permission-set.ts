import { textOfParts } from '../../base/digest.js'

const MAX_SHARED = 256
const sharedLists = new Map<string, readonly string[]>()

/**
 * A frozen list of these names. Equal lists share one: thousands of a service's tokens are cached, and most have the
 * same permissions.
 */
export function permissionList(names: readonly string[]): readonly string[] {
  const key = textOfParts(names)
  const existing = sharedLists.get(key)
  if (existing !== undefined) return existing
  if (sharedLists.size >= MAX_SHARED) sharedLists.clear()
  const list = Object.freeze([...names])
  sharedLists.set(key, list)
  return list
}

/**
 * The permissions of a caller for an app to read. Nothing is decided by it, and each reader gets one of its own,
 * because `Set.prototype.add.call` changes any `Set`.
 */
export class PermissionSet extends Set<string> {
  constructor(names: readonly string[]) {
    super()
    for (const name of names) super.add(name)
    Object.freeze(this)
  }

  override add(): never {
    throw new TypeError('the permissions of a caller cannot be changed')
  }

  override delete(): never {
    return this.add()
  }

  override clear(): never {
    return this.add()
  }

  /** A list: the JSON of a `Set` is an empty object. */
  toJSON(): readonly string[] {
    return [...this]
  }
}
