import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { http } from '../../base/node-http.js'

type HeaderPairs = readonly (readonly [name: string, value: string])[]

/** The status and headers of a response. */
export interface Head {
  readonly status: number
  /** The headers to store. */
  readonly headers: HeaderPairs
  /** The `Content-Length`, if the response has Node's `strictContentLength`. */
  readonly strictLength: number | undefined
}

/**
 * Returns the head for the arguments of `writeHead`, with the headers in `storedHeaders` and always with
 * the handler's own `Content-Length`.
 */
export function readHead(
  response: ServerResponse,
  [status, reason, list]: readonly unknown[],
  storedHeaders: ReadonlySet<string>,
): Head {
  const ofWriteHead = typeof reason === 'string' ? list : (list ?? reason)
  const headers = storedPairs(response, ofWriteHead, storedHeaders)
  const length = headers.find(([name]) => name === LENGTH)?.[1]
  return {
    // Node converts the status in the same way.
    status: Number(status) | 0,
    headers,
    strictLength: response.strictContentLength && length !== undefined ? Number(length) : undefined,
  }
}

const LENGTH = 'content-length'

/** Whether a response with this status has no body, whatever its handler writes. */
export const isBodyless = (status: number): boolean =>
  status === 204 || status === 304 || status < 200

/** The headers of `writeHead` replace those of the response. */
function storedPairs(
  response: ServerResponse,
  ofWriteHead: unknown,
  storedHeaders: ReadonlySet<string>,
): HeaderPairs {
  const pairs: (readonly [string, string])[] = []
  const mergedHeaders =
    ofWriteHead === undefined ? undefined : mergeWithResponse(response, ofWriteHead)
  if (mergedHeaders === undefined) {
    for (const name of storedHeaders) addPairs(pairs, name, response.getHeader(name))
    if (!storedHeaders.has(LENGTH)) addPairs(pairs, LENGTH, response.getHeader(LENGTH))
  } else {
    for (const [name, value] of mergedHeaders) {
      const lowerCase = name.toLowerCase()
      if (storedHeaders.has(lowerCase) || lowerCase === LENGTH) addPairs(pairs, lowerCase, value)
    }
  }
  return pairs
}

function addPairs(pairs: (readonly [string, string])[], name: string, values: unknown): void {
  if (values === undefined) return
  if (Array.isArray(values)) for (const value of values) pairs.push([name, String(value)])
  else pairs.push([name, String(values)])
}

function mergeWithResponse(
  response: ServerResponse,
  ofWriteHead: unknown,
): readonly (readonly [string, unknown])[] {
  const others = Object.entries(response.getHeaders())
  if (others.length === 0) return pairsOf(ofWriteHead)
  if (Array.isArray(ofWriteHead))
    return Object.entries(mergeByDryRun(response, others, ofWriteHead))
  const headers = new Map<string, unknown>(others)
  for (const [name, value] of pairsOf(ofWriteHead)) headers.set(name.toLowerCase(), value)
  return [...headers]
}

/** Lets Node merge, because its versions treat names that a list repeats differently. */
function mergeByDryRun(
  { req }: ServerResponse,
  others: readonly [string, OutgoingHttpHeader | undefined][],
  list: OutgoingHttpHeader[],
): OutgoingHttpHeaders {
  const scratch = new http.ServerResponse(req)
  for (const [name, value] of others) if (value !== undefined) scratch.setHeader(name, value)
  return scratch.writeHead(200, list).getHeaders()
}

/** Server-sent events must arrive as they happen. */
export const isEventStream = ({ headers }: Head): boolean =>
  headers.some(
    ([name, value]) => name === 'content-type' && /^\s*text\/event-stream\s*(;|$)/i.test(value),
  )

/** `writeHead` takes an object, a flat array of names and values, or an array of pairs. */
function pairsOf(headers: unknown): (readonly [string, unknown])[] {
  if (!Array.isArray(headers)) {
    const entries = Object.entries((headers ?? {}) as OutgoingHttpHeaders)
    return entries.filter(([, value]) => value !== undefined)
  }
  if (Array.isArray(headers[0])) return headers.map(([name, value]) => [String(name), value])
  const pairs: [string, unknown][] = []
  for (let index = 0; index + 1 < headers.length; index += 2) {
    pairs.push([String(headers[index]), headers[index + 1]])
  }
  return pairs
}

/**
 * Keeps what Node has queued for a response (`100 Continue`, early hints) before its head. Node queues
 * it while another response on the connection is yet to be sent, and puts the head of a body that comes
 * as bytes before it: the client then reads it as the beginning of the body. A head that leaves with a
 * text in its own encoding is queued in order. See docs/decisions/queued-heads.md.
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

/** Node's own check comes too late: when the response is sent, it is already stored. */
export function assertLength({ strictLength }: Head, length: number, isLast: boolean): void {
  if (strictLength === undefined) return
  if (length === strictLength || (length < strictLength && !isLast)) return
  throw lengthMismatch(length, strictLength)
}

/** The error of Node for a body whose length differs, with `strictContentLength`. */
export const lengthMismatch = (actual: number, announced: number): Error =>
  Object.assign(
    new Error(
      `Response body's content-length of ${actual} byte(s) does not match the content-length of ${announced} byte(s) set in header`,
    ),
    { code: 'ERR_HTTP_CONTENT_LENGTH_MISMATCH' },
  )
