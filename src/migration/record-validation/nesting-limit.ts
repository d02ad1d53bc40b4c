/**
 * The core's parser of JSON takes 255 levels (Gson from 2.12 on). A call adds two of its own, so a
 * deeper record would make the whole call unreadable.
 */
export const MAX_LEVELS = 253

/** The record is level 1. */
export const LEVEL_OF_MEMBERS = 2

/** What the core answers to the whole call. */
export const TOO_DEEP = 'Invalid Json Input'

/** Whether a value that stands at a level of its record goes too deep. */
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
