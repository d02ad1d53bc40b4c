import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type Watcher = () => void

interface ServedSocket extends Socket {
  readonly server?: { readonly listening?: boolean }
}

const watchersOf = new WeakMap<Socket, Set<Watcher>>()

/**
 * Calls `destroyed` when this process destroys the connection of a response. That is how Express's
 * final handler answers an error that comes after the response has begun. Not when the caller hangs
 * up, a timeout strikes or the server closes: the handler may then still be at work.
 */
export function watchLocalDestroy(response: ServerResponse, destroyed: () => void): void {
  const { socket } = response.req
  // A response without a connection: some test harnesses and serverless adapters make such.
  if (typeof socket?.destroy !== 'function') return
  const watchers = watchersOf.get(socket) ?? patchDestroy(socket)
  const watcher = (): void => {
    if (response.socket === socket) destroyed()
  }
  watchers.add(watcher)
  response.once('close', () => watchers.delete(watcher))
}

/** Once for a connection, however many requests it carries. */
function patchDestroy(socket: ServedSocket): Set<Watcher> {
  const watchers = new Set<Watcher>()
  watchersOf.set(socket, watchers)
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
    if (isOurs && socket.server?.listening !== false) for (const watcher of watchers) watcher()
    return Reflect.apply(destroy, socket, args)
  }
  return watchers
}
