import type { ServerResponse } from 'node:http'

/** The functions of a response as they were found: they send. */
export interface Sender
  extends Pick<ServerResponse, 'writeHead' | 'flushHeaders' | 'write' | 'end' | 'destroy'> {
  /** Whether one of them is at work: what an outer middleware then calls is meant for them too. */
  isSending(): boolean
  /** Sends once the promise has settled. A fault in sending breaks the connection, nothing else. */
  after(settled: Promise<void>, send: () => void): void
}

export function senderOf(response: ServerResponse): Sender {
  const destroy = response.destroy.bind(response)
  let depth = 0

  const sending = <F>(work: F & ((...args: never[]) => unknown)): F =>
    ((...args: never[]) => {
      depth += 1
      try {
        return Reflect.apply(work, response, args)
      } finally {
        depth -= 1
      }
    }) as F

  return {
    writeHead: response.writeHead.bind(response),
    flushHeaders: sending(response.flushHeaders),
    write: sending(response.write),
    end: sending(response.end),
    destroy,
    isSending: () => depth > 0,
    after(settled, send) {
      settled
        .catch(() => {})
        .then(send)
        .catch(() => void destroy())
    },
  }
}
