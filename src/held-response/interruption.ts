import type { ServerResponse } from 'node:http'
import { type ConnectionWatcher, watchConnection } from './connection.js'

/** Tells when nobody is left to end a response, and when its connection has gone. */
export function watchInterruption(watcher: ConnectionWatcher): void {
  const { response } = watcher
  const leaveConnection = watchConnection(watcher)
  response.once('pipe', (source: NodeJS.ReadableStream) => watchSources(source, watcher))
  response.once('close', () => {
    leaveConnection()
    // Ended by another function than its own: `end` of Node's prototype, say.
    if (response.writableEnded) watcher.interrupted()
    watcher.disconnected()
  })
}

/**
 * A response is interrupted when it is closed and what was piped into it has stopped before its
 * end. That is how Node's pipes and Express's `sendFile` drop an answer.
 */
function watchSources(
  first: NodeJS.ReadableStream,
  { response, interrupted }: ConnectionWatcher,
): void {
  const sources = new Set<NodeJS.ReadableStream>()
  let wasCut = false

  // Later, because a source may be told before the response is, and because another may follow.
  const check = (): void => {
    setImmediate(() => {
      if (wasCut && sources.size === 0 && response.closed) interrupted()
    })
  }
  const leave = (source: NodeJS.ReadableStream & { readableEnded?: boolean }): void => {
    if (!sources.delete(source)) return
    if (source.readableEnded !== true && isGone(response)) wasCut = true
    check()
  }
  const enter = (source: NodeJS.ReadableStream): void => {
    sources.add(source)
    source.once('close', () => leave(source))
  }

  enter(first)
  response.on('pipe', enter)
  response.on('unpipe', leave)
  response.once('close', check)
}

const isGone = ({ destroyed, socket }: ServerResponse): boolean =>
  destroyed || socket?.writable === false
