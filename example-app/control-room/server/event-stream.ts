import type { ServerResponse } from 'node:http'
import type { Room } from '../ports.js'

const HEARTBEAT_MS = 10_000

/** How long the browser waits before it connects again. */
const RETRY_MS = 1000

/**
 * A page that has left this much unread when there is more to send is let go: it comes back, and is
 * sent everything again.
 */
const MAX_UNREAD_BYTES = 1024 * 1024

/** More pages than a person looks at. */
const MAX_STREAMS = 32

export interface EventStreams {
  /** Answers with the messages of the room, until either side ends it. */
  open(room: Room, response: ServerResponse): void
  isFull(): boolean
  close(): void
}

/** The server-sent events of a room, to any number of pages. */
export function createEventStreams(): EventStreams {
  const ends = new Set<() => void>()

  function open(room: Room, response: ServerResponse): void {
    response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' })
    const write = (text: string): void => {
      if (response.writableLength > MAX_UNREAD_BYTES) response.destroy()
      if (!response.destroyed) response.write(text)
    }
    write(`retry: ${RETRY_MS}\n\n`)
    const unsubscribe = room.subscribe((type, message) => {
      // JSON has no line breaks outside its texts, where they are escaped.
      write(`event: ${type}\ndata: ${JSON.stringify(message)}\n\n`)
    })
    const heartbeat = setInterval(() => write(': still here\n\n'), HEARTBEAT_MS)
    const end = (): void => {
      clearInterval(heartbeat)
      unsubscribe()
      ends.delete(end)
      response.destroy()
    }
    ends.add(end)
    response.once('close', end)
  }

  return {
    open,
    isFull: () => ends.size >= MAX_STREAMS,
    close() {
      for (const end of [...ends]) end()
    },
  }
}
