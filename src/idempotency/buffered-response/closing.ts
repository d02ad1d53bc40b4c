import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const CONNECTION = Symbol('express-service-auth connection')

interface ServedSocket extends Socket {
  readonly server?: { readonly listening?: boolean }
  [CONNECTION]?: Connection
}

/** What has become of a connection, however many requests it carries. */
interface Connection {
  /** How many buffered responses wait on it. */
  responses: number
  isTimedOut: boolean
  /** Whether this process ended it before the client did. */
  isEndedHere: boolean
}

/**
 * Calls `onEnd` when a response is closed and nothing is left that would end it: this process has closed its
 * connection, as Express's final handler does after an error once the head was sent; it was ended by a function that is
 * not replaced, such as `end` of Node's prototype; or a stream that was piped into it has stopped. If the client
 * disconnects, a timeout expires or the server closes, the handler may still be running.
 */
export function watchClosing(response: ServerResponse, onEnd: () => void): void {
  const socket: ServedSocket | null | undefined = response.req?.socket
  // What is gone before the handler begins was not closed by it, though its event may still be to come.
  const connection = socket && !socket.destroyed ? connectionOf(socket) : undefined
  if (connection) connection.responses += 1
  response.once('close', () => {
    const isClosedHere = connection && isClosedByThisProcess(response, socket, connection)
    if (connection) connection.responses -= 1
    if (response.finished || isClosedHere) onEnd()
    // Code that called `end` of Node's prototype, not our replacement, has sent a body without its head.
    if (response.finished && !response.headersSent) socket?.destroy()
  })
  watchPipes(response, onEnd)
}

/** Called for each response. Some test harnesses and serverless adapters create responses without a real connection. */
function connectionOf(socket: ServedSocket): Connection | undefined {
  if (typeof socket.once !== 'function') return undefined
  const known = socket[CONNECTION]
  if (known !== undefined) {
    known.isTimedOut = false
    return known
  }
  const connection = { responses: 0, isTimedOut: false, isEndedHere: false }
  socket[CONNECTION] = connection
  socket.on('timeout', () => {
    connection.isTimedOut = true
  })
  socket.once('finish', () => {
    connection.isEndedHere = !socket.readableEnded
  })
  return connection
}

/** Not if several responses wait on the connection, because its error may be that of another response. */
function isClosedByThisProcess(
  response: ServerResponse,
  socket: ServedSocket,
  { responses, isTimedOut, isEndedHere }: Connection,
): boolean {
  if (responses > 1 || response.socket !== socket) return false
  if (isTimedOut || socket.server?.listening === false) return false
  if (socket.errored) return !isFailure(socket.errored)
  return isEndedHere || !socket.readableEnded
}

const CONNECTION_SYSCALLS: ReadonlySet<unknown> = new Set(['read', 'write', 'shutdown'])

/** `HPE_` is the HTTP parser. `EPIPE` and `ECONNRESET` also occur without a `syscall`. */
const FAILURE_CODES = /^(HPE_|ERR_SSL_|ERR_TLS_|(ERR_HTTP_REQUEST_TIMEOUT|EPIPE|ECONNRESET)$)/

/**
 * Whether Node destroys a connection for this reason: it has failed, or the client has sent an invalid
 * request. A handler that destroys the connection passes an error without these codes, or none.
 */
const isFailure = ({ code, syscall }: NodeJS.ErrnoException): boolean =>
  CONNECTION_SYSCALLS.has(syscall) || FAILURE_CODES.test(String(code))

/** Node's pipes and Express's `sendFile` abandon an answer once its response is closed. */
function watchPipes(response: ServerResponse, onEnd: () => void): void {
  const sources = new Set<NodeJS.ReadableStream>()
  const onStop = (source: NodeJS.ReadableStream & { readableEnded?: boolean }): void => {
    if (sources.delete(source) && source.readableEnded !== true && isGone(response)) onEnd()
  }
  const onPipe = (source: NodeJS.ReadableStream): void => {
    sources.add(source)
    source.once('close', () => onStop(source))
  }
  response.once('pipe', (source: NodeJS.ReadableStream) => {
    onPipe(source)
    response.on('pipe', onPipe)
    response.on('unpipe', onStop)
  })
}

const isGone = ({ destroyed, socket }: ServerResponse): boolean =>
  destroyed || socket?.writable === false

/** Whether the connection of a response is gone, even if the response waits behind another on it. */
export const isDisconnected = ({ destroyed, req }: ServerResponse): boolean =>
  destroyed || req?.socket?.destroyed === true

/**
 * Whether Node destroys the response because it waits behind another on a connection that is gone. It
 * does so from Node 24; the first response in line only gets an event.
 */
export const isQueuedOnLostConnection = (
  { req, socket }: ServerResponse,
  reason: unknown,
): boolean =>
  socket === null &&
  req?.socket?.destroyed === true &&
  (reason as NodeJS.ErrnoException | undefined)?.code === 'ECONNRESET'
