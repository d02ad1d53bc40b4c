/**
 * The core's JSON parser accepts 255 levels (Gson 2.12 and later). A call adds two levels, so a deeper
 * record would make the whole call unreadable.
 */
export const MAX_LEVELS = 253

/** The record is level 1. */
export const LEVEL_OF_MEMBERS = 2

/** The core's answer to the whole call. */
export const TOO_DEEP = 'Invalid Json Input'

/** Whether a value at this level of its record is nested too deeply. */
export function isTooDeep(value: unknown, level: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (level > MAX_LEVELS) return true
  if (Array.isArray(value)) return value.some((element) => isTooDeep(element, level + 1))
  const object = value as Record<string, unknown>
  for (const name of Object.keys(object)) {
    if (isTooDeep(object[name], level + 1)) return true
  }
  return false
}
