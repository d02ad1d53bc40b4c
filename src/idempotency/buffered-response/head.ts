import type {
  ClientRequest,
  OutgoingHttpHeader,
  OutgoingHttpHeaders,
  ServerResponse,
} from 'node:http'
import { Socket } from 'node:net'
import { http } from '../../base/node-http.js'
import { type Sender, sendByOriginal } from './original-functions.js'

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
    // Node's `writeHead` also converts the status like this.
    status: Number(status) | 0,
    headers,
    strictLength: response.strictContentLength && length !== undefined ? Number(length) : undefined,
  }
}

const LENGTH = 'content-length'

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

/** Whether the response is an event stream, which is not buffered: its events must arrive as they happen. */
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

/** A head that the handler has written and that is not sent yet. */
export interface DeferredHead {
  readonly args: readonly unknown[]
  /** The values before the handler wrote the head. */
  readonly statusCode: number
  readonly statusMessage: string
  /** Whether the handler only called `end`, so that Node writes the head in `end`. */
  isImplicit: boolean
}

/** A response whose head may wait. */
interface HeadState extends Sender {
  deferredHead: DeferredHead | undefined
  /** Whether `Transfer-Encoding` was removed: Node then does not chunk the body by itself. */
  isChunkingRemoved: boolean
  /** The arguments of `writeHead` after the status, for a head that Node writes in `end`. */
  headArgsAfterStatus: readonly unknown[]
}

type HeadFunction = 'setHeader' | 'setHeaders' | 'appendHeader' | 'removeHeader' | 'writeHead'

/** Whether Node has sent the head, even if `headersSent` already shows a deferred head as sent. */
export const isHeadSent = (response: ServerResponse): boolean =>
  Reflect.get(http.ServerResponse.prototype, 'headersSent', response)

/**
 * Changes a response as Node's `writeHead` does, but writes no head, because that could not be undone.
 * The head can no longer be changed after this.
 */
export function deferHead(head: HeadState, input: readonly unknown[]): DeferredHead {
  const { response } = head
  const { statusCode, statusMessage } = response
  const args = input.map(copyOf)
  if (isPlain(response, args)) {
    const status = args[0] as number
    response.statusMessage = http.STATUS_CODES[status] ?? 'unknown'
    response.statusCode = status
  } else {
    applyByDryRun(head, args)
  }
  showHeadersSent(response)
  return { args, statusCode, statusMessage, isImplicit: false }
}

const IS_DEFERRED = Symbol('express-service-auth deferred head')

/** A response whose `headersSent` is true before Node has sent the head. */
type ShowingResponse = ServerResponse & { [IS_DEFERRED]?: boolean }

/** Shared by all responses. A response keeps the property, because removing it would cost more. */
const HEADERS_SENT = {
  configurable: true,
  get(this: ShowingResponse): boolean {
    return this[IS_DEFERRED] === true || isHeadSent(this)
  },
}

function showHeadersSent(response: ShowingResponse): void {
  response[IS_DEFERRED] = true
  Object.defineProperty(response, 'headersSent', HEADERS_SENT)
}

/** Copies the headers, because the handler may reuse their object. */
function copyOf(arg: unknown): unknown {
  if (Array.isArray(arg)) return arg.map(copyOf)
  return typeof arg === 'object' && arg !== null ? { ...arg } : arg
}

/** Whether Node would accept the head and add nothing but the message of the status. */
function isPlain(response: ServerResponse, args: readonly unknown[]): boolean {
  const [status] = args
  const isStatus = Number.isInteger(status) && Number(status) >= 100 && Number(status) <= 999
  return args.length === 1 && isStatus && !response.statusMessage && !response.hasHeader('trailer')
}

/** Writes the head to another response and copies the result, so that Node's own checks apply. */
function applyByDryRun({ response, isChunkingRemoved }: HeadState, args: readonly unknown[]): void {
  const scratch = new http.ServerResponse(response.req ?? SENT.req)
  if (isChunkingRemoved) scratch.removeHeader('Transfer-Encoding')
  scratch.useChunkedEncodingByDefault = response.useChunkedEncodingByDefault
  scratch.statusCode = response.statusCode
  scratch.statusMessage = response.statusMessage
  for (const [name, value] of copyHeaders(response)) scratch.setHeader(name, value)
  try {
    Reflect.apply(scratch.writeHead, scratch, args)
  } finally {
    response.statusCode = scratch.statusCode
    response.statusMessage = scratch.statusMessage
    for (const [name, value] of copyHeaders(scratch)) {
      if (response.getHeader(name) !== value) response.setHeader(name, value)
    }
  }
}

export type Header = readonly [name: string, value: number | string | string[]]

/** Returns the headers with their names as written; copies lists, because Node appends to them. */
export const copyHeaders = (response: ServerResponse): Header[] =>
  // The types of `ServerResponse` omit this function.
  (response as ServerResponse & Pick<ClientRequest, 'getRawHeaderNames'>)
    .getRawHeaderNames()
    .map((name) => {
      const value = response.getHeader(name) ?? ''
      return [name, Array.isArray(value) ? [...value] : value]
    })

/**
 * Writes the head by the original functions, or leaves it to their `end`, where an outer middleware may
 * change head and body.
 */
export function sendHead(head: HeadState): void {
  const { response, deferredHead } = head
  if (deferredHead === undefined) return
  clearDeferredHead(head)
  const { args, statusCode, statusMessage, isImplicit } = deferredHead
  response.statusMessage = statusMessage
  if (isImplicit) {
    const [status, ...others] = args
    response.statusCode = Number(status)
    head.headArgsAfterStatus = others
  } else {
    response.statusCode = statusCode
    sendByOriginal(head, 'writeHead', args)
  }
}

export function clearDeferredHead(head: HeadState): void {
  head.deferredHead = undefined
  const response: ShowingResponse = head.response
  response[IS_DEFERRED] = false
}

/** A response whose head has been sent, so that Node itself throws its error. */
const SENT = new http.ServerResponse(new http.IncomingMessage(new Socket())).writeHead(200)

export const throwHeadersSent = (name: HeadFunction, args: readonly unknown[]): unknown =>
  Reflect.apply(SENT[name], SENT, args)
