import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { http } from '../../base/node-http.js'
import { isBodyless, type StoredResult } from './stored-result.js'

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

/** Sets the headers of a `writeHead`: an object, or a flat list of names and values, where a name may be repeated. */
function applyHeaders(response: ServerResponse, given: unknown): void {
  if (!Array.isArray(given)) {
    for (const [name, value] of Object.entries((given ?? {}) as OutgoingHttpHeaders)) {
      response.setHeader(name, value as OutgoingHttpHeader)
    }
    return
  }
  const names: string[] = given.filter((_, index) => index % 2 === 0)
  for (const name of names) response.removeHeader(name)
  for (const [index, name] of names.entries()) response.appendHeader(name, given[index * 2 + 1])
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
 * Keeps interim responses (`100 Continue`, early hints) before the head of the final one. Node queues them while an
 * earlier response on the connection is not sent yet. If the body comes as bytes, Node puts the head before the
 * queue, and the client reads the interim responses as the beginning of the body. A head that leaves with a string
 * of an explicit encoding is queued in order. See docs/decisions/buffered-response.md.
 */
export function keepHeadInOrder(response: ServerResponse): void {
  if (!isQueued(response)) return
  const { writeHead } = response
  response.writeHead = (...args: unknown[]): ServerResponse => {
    const returned: ServerResponse = Reflect.apply(writeHead, response, args)
    if (isQueued(response) && response.writableLength > 0 && mayHaveBody(response)) {
      Reflect.apply(http.ServerResponse.prototype.write, response, ['', 'latin1'])
    }
    return returned
  }
}

const isQueued = ({ socket }: ServerResponse): boolean => socket === null

/** Without a body, Node itself sends the head as text. */
const mayHaveBody = ({ req, statusCode }: ServerResponse): boolean =>
  req?.method !== 'HEAD' && !isBodyless(statusCode)
