/** The core's `trim` removes characters up to this one: the space and the control characters. */
const LAST_TRIMMED = 0x20

/** Trims like the core: removes control characters too, but, unlike `String.prototype.trim`, no other spaces. */
export function trimmed(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && text.charCodeAt(start) <= LAST_TRIMMED) start += 1
  while (end > start && text.charCodeAt(end - 1) <= LAST_TRIMMED) end -= 1
  return start === 0 && end === text.length ? text : text.slice(start, end)
}

/** The white space of the core, which excludes the non-breaking spaces. */
const SPACES: ReadonlySet<number> = new Set([
  ...range(0x09, 0x0d),
  ...range(0x1c, 0x20),
  0x1680,
  ...range(0x2000, 0x2006),
  ...range(0x2008, 0x200a),
  0x2028,
  0x2029,
  0x205f,
  0x3000,
])

/** Whether the core considers the text blank. */
export function isBlank(text: string): boolean {
  for (let place = 0; place < text.length; place += 1) {
    if (!SPACES.has(text.charCodeAt(place))) return false
  }
  return true
}

/** Returns an e-mail address or a tenant id in the form that the core stores and compares. */
export const lowerCased = (text: string): string => trimmed(text).toLowerCase()

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}
