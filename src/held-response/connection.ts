import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Who is told what becomes of the connection of a response, until the response is closed. */
export interface ConnectionWatcher {
  /**
   * This process destroys it. That is how Express's final handler answers an error that comes after
   * the response has begun. Not when the caller hangs up, a timeout strikes or the server closes:
   * the handler may then still be at work. Nor when another response waits behind this one: it may
   * be the other's error.
   */
  destroyed(): void
  /** It has gone, whoever closed it. Node tells the response only when it is the first in line. */
  closed(): void
}

interface ServedSocket extends Socket {
  readonly server?: { readonly listening?: boolean }
}

interface Watch {
  readonly response: ServerResponse
  readonly watcher: ConnectionWatcher
}

const watchesOf = new WeakMap<Socket, Set<Watch>>()

export function watchConnection(response: ServerResponse, watcher: ConnectionWatcher): void {
  const { socket } = response.req
  // A response without a real connection: some test harnesses and serverless adapters make such.
  if (typeof socket?.prependListener !== 'function') return
  const watches = watchesOf.get(socket) ?? watchSocket(socket)
  const watch = { response, watcher }
  watches.add(watch)
  response.once('close', () => watches.delete(watch))
}

/** Whether the connection of a response has gone, also of one that waits behind another on it. */
export const isDisconnected = ({ destroyed, req }: ServerResponse): boolean =>
  destroyed || req.socket?.destroyed === true

/** Once for a connection, however many requests it carries. */
function watchSocket(socket: ServedSocket): Set<Watch> {
  const watches = new Set<Watch>()
  watchesOf.set(socket, watches)
  let isTimeout = false
  socket.prependListener('timeout', () => {
    isTimeout = true
    process.nextTick(() => {
      isTimeout = false
    })
  })
  const { destroy } = socket
  socket.destroy = (...args) => {
    const isOurs = args[0] === undefined && !socket.readableEnded && !isTimeout
    const [first] = watches
    const isOnly = watches.size === 1 && first?.response.socket === socket
    if (isOurs && isOnly && socket.server?.listening !== false) first.watcher.destroyed()
    return Reflect.apply(destroy, socket, args)
  }
  socket.once('close', () => {
    for (const { watcher } of watches) watcher.closed()
  })
  return watches
}
