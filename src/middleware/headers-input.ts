import { wrongWiring } from '../base/decision/service-auth-error.js'
import { isObject } from '../base/options.js'
import type { WireHeaders } from '../base/raw-headers.js'
import { requestIdOf } from './request-id.js'

/**
 * The headers of a request: a Node request (its `rawHeaders` count), a `Headers`, or an object of names and
 * values. In an object own members count, in any letter case; `undefined` and an empty list count as absent.
 */
export type HeadersInput =
  | { readonly rawHeaders: readonly string[] }
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * The headers in the form in which Node gives them.
 *
 * @throws ServiceAuthError `wrong_wiring` for anything but headers.
 */
export function wireHeaders(input: HeadersInput): WireHeaders {
  if (isNodeRequest(input)) return input
  const tag = Object.prototype.toString.call(input)
  if (tag === '[object Headers]') return fromHeaders(input as Headers)
  // An array, a `Map`, a fetch `Request` and so on have no headers as members.
  if (tag === '[object Object]') return fromRecord(input as Record<string, unknown>)
  throw wrongWiring(NO_HEADERS)
}

/** `req.id` of a Node request. */
export const requestIdIn = (input: HeadersInput): string | number | undefined =>
  isNodeRequest(input) ? requestIdOf(input) : undefined

const NO_HEADERS =
  'authenticate: the headers must be a Node request, a Headers or an object of names and values'

function isNodeRequest(input: unknown): input is WireHeaders {
  if (!isObject(input)) return false
  const { rawHeaders, headers } = input
  if (!Array.isArray(rawHeaders) || !rawHeaders.every((each) => typeof each === 'string')) {
    return false
  }
  // In an object of names and values, a header may have the name `rawHeaders`.
  return isObject(headers) || Object.keys(input).length === 1
}

/** The fields that a decision depends on. */
const FIELDS: readonly string[] = ['authorization', 'dpop']

/** A `Headers` joins repeated fields by a comma, so they are refused: no token and no proof contains a comma. */
function fromHeaders(headers: Headers): WireHeaders {
  const rawHeaders = FIELDS.flatMap((name) => {
    const value = headers.get(name)
    return value === null ? [] : [name, value]
  })
  return { rawHeaders, headers: {} }
}

function fromRecord(record: Readonly<Record<string, unknown>>): WireHeaders {
  const rawHeaders = Object.entries(record).flatMap(([name, value]) => {
    if (value === undefined) return []
    const values: unknown[] = Array.isArray(value) ? value : [value]
    if (!values.every((each) => typeof each === 'string')) throw wrongWiring(NO_HEADERS)
    const isRead = FIELDS.includes(name.toLowerCase())
    return isRead ? values.flatMap((each) => [name, each]) : []
  })
  return { rawHeaders, headers: {} }
}
