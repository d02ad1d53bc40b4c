import { type ClientRequest, IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import { type Sender, sendByOriginal } from './original-functions.js'

/** A head that the handler has written, and that is yet to be sent. */
export interface DeferredHead {
  readonly args: readonly unknown[]
  /** As they were before the handler wrote it. */
  readonly statusCode: number
  readonly statusMessage: string
  /** Whether the handler has left it to `end`, so that Node writes it there. */
  isImplicit: boolean
}

/** A response whose head may wait. */
interface HeadState extends Sender {
  deferredHead: DeferredHead | undefined
  /** Whether `Transfer-Encoding` has been taken off: Node then sends no chunks by itself. */
  isChunkingRemoved: boolean
  /** The head that Node writes in `end`, without its status. */
  headArgsAfterStatus: readonly unknown[]
}

type HeadFunction = 'setHeader' | 'setHeaders' | 'appendHeader' | 'removeHeader' | 'writeHead'

/** Whether Node has the head of a response, whatever the response itself shows. */
export const isHeadSent = (response: ServerResponse): boolean =>
  Reflect.get(ServerResponse.prototype, 'headersSent', response)

/**
 * Does all that Node's `writeHead` does to a response, but gives Node no head: that could not be
 * taken back. From here on it is too late to change it.
 */
export function deferHead(head: HeadState, input: readonly unknown[]): DeferredHead {
  const { response } = head
  const { statusCode, statusMessage } = response
  const args = input.map(copyOf)
  if (isPlain(response, args)) {
    const status = args[0] as number
    response.statusMessage = STATUS_CODES[status] ?? 'unknown'
    response.statusCode = status
  } else {
    applyByDryRun(head, args)
  }
  showHeadersSent(response)
  return { args, statusCode, statusMessage, isImplicit: false }
}

const IS_DEFERRED = Symbol('express-service-auth waiting head')

/** A response that shows its handler what Node does not know yet. */
type ShowingResponse = ServerResponse & { [IS_DEFERRED]?: boolean }

/** The same for all responses. It stays on them: to take it off would cost each of them more. */
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
function applyByDryRun({ response, isChunkingRemoved }: HeadState, args: readonly unknown[]): void {
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

/** A response whose head has been sent: Node itself says what it then throws. */
const SENT = new ServerResponse(new IncomingMessage(new Socket())).writeHead(200)

export const throwHeadersSent = (name: HeadFunction, args: readonly unknown[]): unknown =>
  Reflect.apply(SENT[name], SENT, args)
