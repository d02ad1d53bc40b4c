import type { ServerResponse } from 'node:http'
import { type ConnectionWatcher, watchConnection } from './client-connection.js'

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
    if (response.writableEnded) watcher.interrupted()
    watcher.disconnected()
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
  { response, interrupted }: ConnectionWatcher,
): ReadonlySet<NodeJS.ReadableStream> {
  const sources = new Set<NodeJS.ReadableStream>()
  let wasCut = false

  // Later, because a source may be notified before the response, and because another may follow.
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
  return sources
}

const isGone = ({ destroyed, socket }: ServerResponse): boolean =>
  destroyed || socket?.writable === false
