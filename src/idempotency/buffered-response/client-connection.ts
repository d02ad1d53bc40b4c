import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Callbacks for the connection of a response. */
export interface ConnectionWatcher {
  readonly response: ServerResponse
  /**
   * Whether the response has been ended and is yet to be sent. What would break it off, as Express
   * does where a handler answers and then fails, is then done behind it.
   */
  deferDestroy(destroyOrEnd: () => void): boolean
  /**
   * This process ends it, as Express's final handler does after an error behind the head. Not when
   * the caller hangs up, a timeout strikes or the server closes: the handler may then still be at
   * work. Nor when several responses wait on the connection: it may be another's error.
   */
  onInterrupt(): void
  /** It was closed, by either side. Node notifies a response only if it is the first in line. */
  onDisconnect(): void
}

const WATCHERS = Symbol('express-service-auth connection')

interface ServedSocket extends Socket {
  readonly server?: { readonly listening?: boolean }
  [WATCHERS]?: Set<ConnectionWatcher>
}

/** Watches until the function that is returned is called. */
export function watchConnection(watcher: ConnectionWatcher): () => void {
  const socket: ServedSocket | null | undefined = watcher.response.req?.socket
  // A response without a real connection: some test harnesses and serverless adapters make such.
  if (typeof socket?.prependListener !== 'function') return () => {}
  const watchers = socket[WATCHERS] ?? watchSocket(socket)
  watchers.add(watcher)
  return () => watchers.delete(watcher)
}

/** Whether the connection of a response has gone, also of one that waits behind another on it. */
export const isDisconnected = ({ destroyed, req }: ServerResponse): boolean =>
  destroyed || req?.socket?.destroyed === true

/**
 * Whether Node destroys the response because it waits behind another on a connection that has gone:
 * from Node 24 on it does so, where the first in line is only told.
 */
export const isQueuedOnLostConnection = (
  { req, socket }: ServerResponse,
  reason: unknown,
): boolean =>
  socket === null &&
  req?.socket?.destroyed === true &&
  (reason as NodeJS.ErrnoException | undefined)?.code === 'ECONNRESET'

/** Once for a connection, however many requests it carries. */
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

  /** Whether `breakOff`, by which this process ends the connection, waits for the response on it. */
  function isDeferred(destroyOrEnd: () => void): boolean {
    const [first] = watchers
    const isOnly = watchers.size === 1 && first?.response.socket === socket
    const isOurs = !socket.readableEnded && !isTimeout && socket.server?.listening !== false
    if (!isOnly || !isOurs) return false
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

/** `HPE_`: of the parser, for what a caller has sent. `EPIPE` and `ECONNRESET` come without a call, too. */
const FAILURE_CODES = /^(HPE_|ERR_SSL_|ERR_TLS_|(ERR_HTTP_REQUEST_TIMEOUT|EPIPE|ECONNRESET)$)/

/**
 * Whether Node destroys a connection for this reason: it has failed, or the caller has sent what is no
 * request. A handler that gives up gives an error of its own, or none.
 */
function isFailure(reason: unknown): boolean {
  const { code, syscall }: NodeJS.ErrnoException = Object(reason)
  return CONNECTION_SYSCALLS.has(syscall) || FAILURE_CODES.test(String(code))
}

export interface PipeWatch {
  /** Takes off what is still piped into the response. */
  unpipe(): void
}

/** Watches whether anything is left that could end a response, and its connection. */
export function watchInterruption(watcher: ConnectionWatcher): PipeWatch {
  const { response } = watcher
  const leaveConnection = watchConnection(watcher)
  let sources: ReadonlySet<NodeJS.ReadableStream> | undefined
  response.once('pipe', (source: NodeJS.ReadableStream) => {
    sources = watchSources(source, watcher)
  })
  response.once('close', () => {
    leaveConnection()
    // Ended by another function than its own: `end` of Node's prototype, say.
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
 * A response is interrupted when it is closed and what was piped into it has stopped before its
 * end. That is how Node's pipes and Express's `sendFile` drop an answer.
 */
function watchSources(
  first: NodeJS.ReadableStream,
  { response, onInterrupt }: ConnectionWatcher,
): ReadonlySet<NodeJS.ReadableStream> {
  const sources = new Set<NodeJS.ReadableStream>()
  let hasStoppedEarly = false

  // Later, because a source may be notified before the response, and because another may follow.
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
