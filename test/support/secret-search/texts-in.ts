/** Limits the search, because a value may refer to a whole client. */
const MAX_VALUES = 20_000
/** Members of errors that are read even if they are inherited or accessors. */
const ERROR_MEMBERS = ['name', 'message', 'cause', 'errors'] as const
/** Stack frames are left out, because they would be most of the text to search. */
const STACK_FRAME = /\n {4}at .*/g

/**
 * Returns all texts in a value, each by itself, because most of them come repeatedly: names and values of its members, enumerable or not, symbols, and
 * the content of maps, sets, bytes and errors with their causes. Calls no accessors, except those of `ERROR_MEMBERS`.
 */
export function textsIn(value: unknown): readonly string[] {
  const texts: string[] = []
  const seen = new Set<object>()
  const values = [value]
  while (values.length > 0 && seen.size < MAX_VALUES) {
    const one = values.pop()
    if (typeof one === 'string' || typeof one === 'symbol') texts.push(String(one))
    else if (one instanceof Uint8Array) texts.push(Buffer.from(one).toString('latin1'))
    else if (typeof one === 'object' && one !== null && !seen.has(one)) {
      seen.add(one)
      values.push(...contentOf(one))
    }
  }
  return texts
}

function contentOf(value: object): unknown[] {
  if (Array.isArray(value)) return value
  const names = Reflect.ownKeys(value)
  const members = names
    .filter((name) => !(value instanceof Error && name === 'stack'))
    .map((name) => Object.getOwnPropertyDescriptor(value, name)?.value as unknown)
  const content = [...names, ...members]
  if (value instanceof Map || value instanceof Set) content.push(...value)
  if (value instanceof Error) {
    content.push(...ERROR_MEMBERS.map((name) => (value as Error & { errors?: unknown })[name]))
    content.push(String(value.stack).replace(STACK_FRAME, ''))
  }
  return content
}
