import type { ServerResponse } from 'node:http'

/**
 * Calls `dropped` when the response is closed and whatever was piped into it has stopped: nobody is
 * left to end it. That is how Node's pipes and Express's `sendFile` drop an answer.
 */
export function watchSources(response: ServerResponse, dropped: () => void): void {
  const sources = new Set<NodeJS.ReadableStream>()
  let wasPiped = false

  // Later, because a source that has come to its end calls `end` after it has let go.
  const check = (): void => {
    setImmediate(() => {
      if (wasPiped && sources.size === 0 && response.closed) dropped()
    })
  }
  const leave = (source: NodeJS.ReadableStream): void => {
    if (sources.delete(source)) check()
  }
  response.on('pipe', (source: NodeJS.ReadableStream) => {
    wasPiped = true
    sources.add(source)
    source.once('close', () => leave(source))
  })
  response.on('unpipe', leave)
  response.once('close', check)
}
