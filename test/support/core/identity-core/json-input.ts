/** The caller's input is wrong; the message is the body of the 400. */
export class BadInput extends Error {
  override readonly name = 'BadInput'
}

export type JsonObject = Record<string, unknown>

/** @throws {BadInput} */
export function parseObject(text: string): JsonObject {
  try {
    const body = asStored(JSON.parse(text), 0)
    if (isObject(body)) return body
  } catch {
    // Thrown below: the core does not distinguish text that is not JSON from JSON that is not an object.
  }
  throw new BadInput('Invalid Json Input')
}

const DEEPEST = 255

/** The core writes `?` for a lone surrogate when it stores or sends text. */
function asStored(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return value.replaceAll(/\p{Surrogate}/gu, '?')
  if (typeof value !== 'object' || value === null) return value
  if (depth === DEEPEST) throw new BadInput('Invalid Json Input')
  if (Array.isArray(value)) return value.map((element) => asStored(element, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      asStored(name, depth),
      asStored(member, depth + 1),
    ]),
  )
}

/** @throws {BadInput} if the member is missing or of another type */
export function field<Value>(
  body: JsonObject,
  name: string,
  is: (value: unknown) => value is Value,
): Value {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  if (is(value)) return value
  throw new BadInput(`Field name '${name}' is invalid in JSON input`)
}

/** Like `field`, but returns `undefined` if the member is missing. */
export function optionalField<Value>(
  body: JsonObject,
  name: string,
  is: (value: unknown) => value is Value,
): Value | undefined {
  return Object.hasOwn(body, name) ? field(body, name, is) : undefined
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isString(value: unknown): value is string {
  return typeof value === 'string'
}

export function isBoolean(value: unknown): value is boolean {
  return typeof value === 'boolean'
}

export function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value)
}

export function isListOfStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isString)
}
