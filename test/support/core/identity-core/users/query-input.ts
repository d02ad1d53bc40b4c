import { BadInput } from '../json-input.js'

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
