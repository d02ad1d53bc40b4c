/** Trims like Java, the language of the core: also control characters, but no other white space. */
export function trim(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && text.charCodeAt(start) <= 0x20) start += 1
  while (end > start && text.charCodeAt(end - 1) <= 0x20) end -= 1
  return text.slice(start, end)
}

/** Whether the text is white space in Java, which excludes no-break spaces. */
export function isBlank(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Java counts four of them.
  return /^[\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]*$/.test(text)
}

/** Returns a record as Java prints an object to JSON: without members that are null. */
export function withoutAbsent<Value extends object>(value: Value): Partial<Value> {
  const entries = Object.entries(value).filter(([, member]) => member != null)
  return Object.fromEntries(entries) as Partial<Value>
}
