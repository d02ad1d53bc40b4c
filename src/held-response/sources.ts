import type { ServerResponse } from 'node:http'

/**
 * Calls `dropped` when the response is closed and what was piped into it has stopped before its end:
 * nobody is left to end it. That is how Node's pipes and Express's `sendFile` drop an answer.
 */
export function watchSources(response: ServerResponse, dropped: () => void): void {
  const sources = new Set<NodeJS.ReadableStream>()
  let wasCut = false

  // Later, because a source may be told before the response is, and because another may follow.
  const check = (): void => {
    setImmediate(() => {
      if (wasCut && sources.size === 0 && response.closed) dropped()
    })
  }
  const leave = (source: NodeJS.ReadableStream & { readableEnded?: boolean }): void => {
    if (!sources.delete(source)) return
    if (source.readableEnded !== true && isGone(response)) wasCut = true
    check()
  }
  response.on('pipe', (source: NodeJS.ReadableStream) => {
    sources.add(source)
    source.once('close', () => leave(source))
  })
  response.on('unpipe', leave)
  response.once('close', check)
}

const isGone = ({ destroyed, socket }: ServerResponse): boolean =>
  destroyed || socket?.writable === false
