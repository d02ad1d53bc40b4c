import { type ClientRequest, IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import { type Sending, send } from './original-functions.js'

/** A head that the handler has written, and that is yet to be sent. */
export interface WaitingHead {
  readonly args: readonly unknown[]
  /** As they were before the handler wrote it. */
  readonly statusCode: number
  readonly statusMessage: string
  /** Whether the handler has left it to `end`, so that Node writes it there. */
  isLeftToEnd: boolean
}

/** A response whose head may wait. */
interface Waiting extends Sending {
  waitingHead: WaitingHead | undefined
  /** Whether `Transfer-Encoding` has been taken off: Node then sends no chunks by itself. */
  isChunkingRemoved: boolean
  /** The head that Node writes in `end`, without its status. */
  argsBesideStatus: readonly unknown[]
}

type HeadFunction = 'setHeader' | 'setHeaders' | 'appendHeader' | 'removeHeader' | 'writeHead'

/** Whether Node has the head of a response, whatever the response itself shows. */
export const isHeadSent = (response: ServerResponse): boolean =>
  Reflect.get(ServerResponse.prototype, 'headersSent', response)

/**
 * Does all that Node's `writeHead` does to a response, but gives Node no head: that could not be
 * taken back. From here on it is too late to change it.
 */
export function postponeHead(waiting: Waiting, given: readonly unknown[]): WaitingHead {
  const { response } = waiting
  const { statusCode, statusMessage } = response
  const args = given.map(copyOf)
  if (isPlain(response, args)) {
    const status = args[0] as number
    response.statusMessage = STATUS_CODES[status] ?? 'unknown'
    response.statusCode = status
  } else {
    rehearse(waiting, args)
  }
  showWaiting(response)
  return { args, statusCode, statusMessage, isLeftToEnd: false }
}

const WAITS = Symbol('express-service-auth waiting head')

/** A response that shows its handler what Node does not know yet. */
type Showing = ServerResponse & { [WAITS]?: boolean }

/** The same for all responses. It stays on them: to take it off would cost each of them more. */
const HEADERS_SENT = {
  configurable: true,
  get(this: Showing): boolean {
    return this[WAITS] === true || isHeadSent(this)
  },
}

function showWaiting(response: Showing): void {
  response[WAITS] = true
  Object.defineProperty(response, 'headersSent', HEADERS_SENT)
}

/** The headers as they are now: the handler may use their object again. */
function copyOf(arg: unknown): unknown {
  if (Array.isArray(arg)) return arg.map(copyOf)
  return typeof arg === 'object' && arg !== null ? { ...arg } : arg
}

/** Whether Node has nothing to object, and nothing to add but the message of the status. */
function isPlain(response: ServerResponse, args: readonly unknown[]): boolean {
  const [status] = args
  const isStatus = Number.isInteger(status) && Number(status) >= 100 && Number(status) <= 999
  return args.length === 1 && isStatus && !response.statusMessage && !response.hasHeader('trailer')
}

/** What Node does to another response with this head, and what it throws, is what it does to this. */
function rehearse({ response, isChunkingRemoved }: Waiting, args: readonly unknown[]): void {
  const scratch = new ServerResponse(response.req ?? SENT.req)
  if (isChunkingRemoved) scratch.removeHeader('Transfer-Encoding')
  scratch.useChunkedEncodingByDefault = response.useChunkedEncodingByDefault
  scratch.statusCode = response.statusCode
  scratch.statusMessage = response.statusMessage
  for (const [name, value] of headersOf(response)) scratch.setHeader(name, value)
  try {
    Reflect.apply(scratch.writeHead, scratch, args)
  } finally {
    response.statusCode = scratch.statusCode
    response.statusMessage = scratch.statusMessage
    for (const [name, value] of headersOf(scratch)) {
      if (response.getHeader(name) !== value) response.setHeader(name, value)
    }
  }
}

export type Header = readonly [name: string, value: number | string | string[]]

/** The headers with their names as written. A copy, because Node appends to its lists. */
export const headersOf = (response: ServerResponse): Header[] =>
  // Its declaration lacks the function that it has from its prototype.
  (response as ServerResponse & Pick<ClientRequest, 'getRawHeaderNames'>)
    .getRawHeaderNames()
    .map((name) => {
      const value = response.getHeader(name) ?? ''
      return [name, Array.isArray(value) ? [...value] : value]
    })

/**
 * Hands the head to the functions that the response had before, or leaves it to their `end`: an outer
 * middleware may change head and body there.
 */
export function sendHead(waiting: Waiting): void {
  const { response, waitingHead } = waiting
  if (waitingHead === undefined) return
  forgetHead(waiting)
  const { args, statusCode, statusMessage, isLeftToEnd } = waitingHead
  response.statusMessage = statusMessage
  if (isLeftToEnd) {
    const [status, ...others] = args
    response.statusCode = Number(status)
    waiting.argsBesideStatus = others
  } else {
    response.statusCode = statusCode
    send(waiting, 'writeHead', args)
  }
}

export function forgetHead(waiting: Waiting): void {
  waiting.waitingHead = undefined
  const response: Showing = waiting.response
  response[WAITS] = false
}

/** A response whose head has been sent: Node itself says what it then throws. */
const SENT = new ServerResponse(new IncomingMessage(new Socket())).writeHead(200)

export const refuseAfterHead = (name: HeadFunction, args: readonly unknown[]): unknown =>
  Reflect.apply(SENT[name], SENT, args)
