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

const MAX_INTEGER = 2_147_483_647
const MAX_LONG = 9_223_372_036_854_775_807n

/** @throws {BadInput} if the parameter is absent */
export function requiredText(query: URLSearchParams, name: string): string {
  const value = query.get(name)
  if (value === null) throw new BadInput(`Field name '${name}' is missing in GET request`)
  return value
}

/** @throws {BadInput} if the core does not accept it as an integer */
function optionalInteger(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const value = Number(text)
  const isInRange = value <= MAX_INTEGER && value >= -MAX_INTEGER - 1
  if (/^[+-]?\d+$/.test(text) && isInRange) return value
  throw new BadInput(`Field name '${name}' must be an int in the GET request`)
}

export interface LimitTexts {
  readonly fallback: number
  readonly largest: number
  readonly tooLarge: string
}

/** @throws {BadInput} */
export function pageLimit(query: URLSearchParams, texts: LimitTexts): number {
  const limit = optionalInteger(query, 'limit') ?? texts.fallback
  if (limit > texts.largest) throw new BadInput(texts.tooLarge)
  if (limit < 1) throw new BadInput('limit must a positive integer with min value 1')
  return limit
}

/**
 * Returns the place in a pagination token: an id and a time in milliseconds.
 * @throws {BadInput}
 */
export function placeOf(query: URLSearchParams): { id: string; timeMs: bigint } | undefined {
  const token = query.get('paginationToken')
  if (token === null) return undefined
  const decoded = Buffer.from(token, 'base64').toString()
  const [, id, time = ''] = /^([^;]*);\+?(-?\d+)$/.exec(decoded) ?? []
  if (
    id === undefined ||
    !isLong(time) ||
    Buffer.from(decoded).toString('base64') !== padded(token)
  ) {
    throw new BadInput('invalid pagination token')
  }
  return { id, timeMs: BigInt(time) }
}

function isLong(text: string): boolean {
  const value = BigInt(text)
  return value <= MAX_LONG && value >= -MAX_LONG - 1n
}

/** The core accepts a token without its padding. */
function padded(token: string): string {
  return token.padEnd(Math.ceil(token.length / 4) * 4, '=')
}

export function tokenOf(id: string, timeMs: number): string {
  return Buffer.from(`${id};${timeMs}`).toString('base64')
}
