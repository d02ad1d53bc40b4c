import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { http } from '../../base/node-http.js'
import type { StoredResult } from './stored-result.js'

/** A head that the handler has written and that is not sent yet. */
export interface Head {
  readonly status: number
  /** `undefined` or empty for the usual message of the status. */
  readonly statusMessage: string
  /** The headers to store, and always the handler's own `Content-Length`. */
  readonly headers: StoredResult['headers']
  /** Whether the handler only called `end`: Node writes the head there, and outer middlewares may still change it. */
  isImplicit: boolean
}

/** Whether Node has sent the head, even if `headersSent` already shows a head that waits as sent. */
export const isHeadSent = (response: ServerResponse): boolean =>
  Reflect.get(http.ServerResponse.prototype, 'headersSent', response)

/**
 * Changes the response as Node's `writeHead` does with these arguments, but writes no head, because that could not be
 * undone.
 */
export function applyHead(
  response: ServerResponse,
  [code, reason, list]: readonly unknown[],
  storedHeaders: ReadonlySet<string>,
): Head {
  // As Node converts it.
  const status = Number(code) | 0
  if (status < 100 || status > 999) {
    const error = new RangeError(`Invalid status code: ${code}`)
    throw Object.assign(error, { code: 'ERR_HTTP_INVALID_STATUS_CODE' })
  }
  const statusMessage = typeof reason === 'string' ? reason : response.statusMessage
  response.statusMessage = statusMessage || (http.STATUS_CODES[status] ?? 'unknown')
  response.statusCode = status
  applyHeaders(response, typeof reason === 'string' ? list : (list ?? reason))
  http.validateHeaderValue('statusMessage', response.statusMessage)
  const headers = storedPairs(response, storedHeaders)
  return { status, statusMessage, headers, isImplicit: false }
}

/** Before, the last value of a name that a list repeats replaces the others if the response already had headers. */
const IS_REPEATED_NAME_KEPT = Number.parseInt(process.versions.node, 10) >= 22

/** Sets the headers of a `writeHead`: an object, a flat list of names and values, or a list of pairs. */
function applyHeaders(response: ServerResponse, given: unknown): void {
  if (!Array.isArray(given)) {
    for (const [name, value] of Object.entries((given ?? {}) as OutgoingHttpHeaders)) {
      response.setHeader(name, value as OutgoingHttpHeader)
    }
    return
  }
  const list: unknown[] = Array.isArray(given[0]) ? given.flat() : given
  if (list.length % 2 !== 0) {
    const error = new TypeError('The headers must be a list of names and values')
    throw Object.assign(error, { code: 'ERR_INVALID_ARG_VALUE' })
  }
  const names = list.filter((_, index) => index % 2 === 0).map(String)
  const isRepeatedNameKept = IS_REPEATED_NAME_KEPT || response.getHeaderNames().length === 0
  if (isRepeatedNameKept) for (const name of names) response.removeHeader(name)
  for (const [index, name] of names.entries()) {
    const value = list[index * 2 + 1] as string
    if (isRepeatedNameKept) response.appendHeader(name, value)
    else response.setHeader(name, value)
  }
}

const LENGTH = 'content-length'

function storedPairs(response: ServerResponse, names: ReadonlySet<string>): Head['headers'] {
  const pairs: (readonly [string, string])[] = []
  const add = (name: string): void => {
    const values = response.getHeader(name) ?? []
    for (const value of [values].flat()) pairs.push([name, String(value)])
  }
  names.forEach(add)
  if (!names.has(LENGTH)) add(LENGTH)
  return pairs
}

/** Whether the response is an event stream, which is not buffered: its events must arrive as they happen. */
export const isEventStream = ({ headers }: Head): boolean =>
  headers.some(
    ([name, value]) => name === 'content-type' && /^\s*text\/event-stream\s*(;|$)/i.test(value),
  )

/**
 * Throws Node's error for a body of another length than the `Content-Length` of a response with Node's
 * `strictContentLength`. Node's own check comes too late: when the response is sent, it is already stored.
 */
export function assertLength(
  { strictContentLength }: ServerResponse,
  { headers }: Head,
  { length, isLast }: { readonly length: number; readonly isLast: boolean },
): void {
  const value = headers.find(([name]) => name === LENGTH)?.[1]
  if (!strictContentLength || value === undefined) return
  const strictLength = Number(value)
  if (length === strictLength || (length < strictLength && !isLast)) return
  throw codedError(
    'ERR_HTTP_CONTENT_LENGTH_MISMATCH',
    `Response body's content-length of ${length} byte(s) does not match the content-length of ${strictLength} byte(s) set in header`,
  )
}

/** The error for a change of a head that has been written. */
export const headersSent = (verb: string): Error =>
  codedError('ERR_HTTP_HEADERS_SENT', `Cannot ${verb} headers after they are sent to the client`)

/** An error with the code that Node gives its own. */
export const codedError = (code: string, message: string): Error =>
  Object.assign(new Error(message), { code })
