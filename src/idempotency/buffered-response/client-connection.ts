import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Callbacks for the connection of a response. */
interface ConnectionWatcher {
  readonly response: ServerResponse
  /**
   * Whether the response has ended and is not sent yet. If so, `destroyOrEnd` is called later:
   * Express destroys the connection if a handler answers and then fails.
   */
  deferDestroy(destroyOrEnd: () => void): boolean
  /**
   * This process ends the connection, as Express's final handler does after an error once the head was
   * sent. Not called if the client disconnects, a timeout expires or the server closes, because the handler
   * may still be running; nor if several responses wait on the connection, because the error may be
   * another's.
   */
  onInterrupt(): void
  /** The connection was closed, by either side. Node notifies only the first response in line. */
  onDisconnect(): void
}

const WATCHERS = Symbol('express-service-auth connection')

interface ServedSocket extends Socket {
  readonly server?: { readonly listening?: boolean }
  [WATCHERS]?: Set<ConnectionWatcher>
}

/** Returns a function that stops watching. */
export function watchConnection(watcher: ConnectionWatcher): () => void {
  const socket: ServedSocket | null | undefined = watcher.response.req?.socket
  // Some test harnesses and serverless adapters create responses without a real connection.
  if (typeof socket?.prependListener !== 'function') return () => {}
  const watchers = socket[WATCHERS] ?? watchSocket(socket)
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

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

/** Called once for each connection, however many requests it carries. */
function watchSocket(socket: ServedSocket): Set<ConnectionWatcher> {
  const watchers = new Set<ConnectionWatcher>()
  socket[WATCHERS] = watchers
  let isTimeout = false
  socket.prependListener('timeout', () => {
    isTimeout = true
    process.nextTick(() => {
      isTimeout = false
    })
  })
  const { destroy, end } = socket

  /** Whether a call by which this process ends the connection waits for the response on it. */
  function isDeferred(destroyOrEnd: () => void): boolean {
    const [first] = watchers
    const isOnlyResponse = watchers.size === 1 && first?.response.socket === socket
    const isEndedByThisProcess =
      !socket.readableEnded && !isTimeout && socket.server?.listening !== false
    if (!isOnlyResponse || !isEndedByThisProcess) return false
    if (first.deferDestroy(destroyOrEnd)) return true
    first.onInterrupt()
    return false
  }

  socket.destroy = (...args) => {
    const destroyOrEnd = (): Socket => Reflect.apply(destroy, socket, args)
    return !isFailure(args[0]) && isDeferred(destroyOrEnd) ? socket : destroyOrEnd()
  }
  socket.end = (...args: unknown[]) => {
    const destroyOrEnd = (): Socket => Reflect.apply(end, socket, args)
    return isDeferred(destroyOrEnd) ? socket : destroyOrEnd()
  }
  socket.once('close', () => {
    for (const watcher of watchers) watcher.onDisconnect()
  })
  return watchers
}

const CONNECTION_SYSCALLS: ReadonlySet<unknown> = new Set(['read', 'write', 'shutdown'])

/** `HPE_` is the HTTP parser. `EPIPE` and `ECONNRESET` also occur without a `syscall`. */
const FAILURE_CODES = /^(HPE_|ERR_SSL_|ERR_TLS_|(ERR_HTTP_REQUEST_TIMEOUT|EPIPE|ECONNRESET)$)/

/**
 * Whether Node destroys a connection for this reason: it has failed, or the client has sent an invalid
 * request. A handler that destroys the connection passes an error without these codes, or none.
 */
function isFailure(reason: unknown): boolean {
  const { code, syscall }: NodeJS.ErrnoException = Object(reason)
  return CONNECTION_SYSCALLS.has(syscall) || FAILURE_CODES.test(String(code))
}

export interface PipeWatch {
  /** Unpipes every stream from the response. */
  unpipe(): void
}

/** Watches the connection of a response and the streams that are piped into it. */
export function watchInterruption(watcher: ConnectionWatcher): PipeWatch {
  const { response } = watcher
  const leaveConnection = watchConnection(watcher)
  let sources: ReadonlySet<NodeJS.ReadableStream> | undefined
  response.once('pipe', (source: NodeJS.ReadableStream) => {
    sources = watchSources(source, watcher)
  })
  response.once('close', () => {
    leaveConnection()
    // The response was ended by a function that we have not replaced, such as `end` of Node's prototype.
    if (response.writableEnded) watcher.onInterrupt()
    watcher.onDisconnect()
  })
  return {
    unpipe() {
      for (const source of sources ?? []) source.unpipe(response)
    },
  }
}

/**
 * A response is interrupted when it is closed and a stream that was piped into it has stopped before its
 * end. Node's pipes and Express's `sendFile` abandon an answer in this way.
 */
function watchSources(
  first: NodeJS.ReadableStream,
  { response, onInterrupt }: ConnectionWatcher,
): ReadonlySet<NodeJS.ReadableStream> {
  const sources = new Set<NodeJS.ReadableStream>()
  let hasStoppedEarly = false

  // In a later turn, because a source may be notified before the response, and another source may be piped next.
  const check = (): void => {
    setImmediate(() => {
      if (hasStoppedEarly && sources.size === 0 && response.closed) onInterrupt()
    })
  }
  const onUnpipe = (source: NodeJS.ReadableStream & { readableEnded?: boolean }): void => {
    if (!sources.delete(source)) return
    if (source.readableEnded !== true && isGone(response)) hasStoppedEarly = true
    check()
  }
  const onPipe = (source: NodeJS.ReadableStream): void => {
    sources.add(source)
    source.once('close', () => onUnpipe(source))
  }

  onPipe(first)
  response.on('pipe', onPipe)
  response.on('unpipe', onUnpipe)
  response.once('close', check)
  return sources
}

const isGone = ({ destroyed, socket }: ServerResponse): boolean =>
  destroyed || socket?.writable === false
