import { textOfParts } from '../base/digest.js'

const MAX_KNOWN = 256
const known = new Map<string, readonly string[]>()

/**
 * The same frozen list for the same texts: thousands of a service's tokens are cached, and they
 * differ in everything but their permissions.
 */
export function sharedList(texts: readonly string[]): readonly string[] {
  const key = textOfParts(texts)
  const found = known.get(key)
  if (found !== undefined) return found
  if (known.size >= MAX_KNOWN) known.clear()
  const list = Object.freeze([...texts])
  known.set(key, list)
  return list
}
