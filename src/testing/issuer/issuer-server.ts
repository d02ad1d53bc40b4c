import type { ServerResponse } from 'node:http'
import type { TimerOptions } from 'node:timers'
import { setTimeout as sleep } from 'node:timers/promises'
import { closeServer, createLoopbackServer, listenOnLoopback } from './loopback.js'

/** The state of an issuer's key set, for its HTTP server or its in-process `fetch`. */
export interface Publication {
  document(): object
  maxAgeSeconds: number
  isDown: boolean
  delayMs: number
  fetches: number
}

interface KeySetServer {
  readonly url: string
  close(): Promise<void>
}

const headersOf = ({ maxAgeSeconds }: Publication): Record<string, string> => ({
  'content-type': 'application/json',
  'cache-control': `max-age=${maxAgeSeconds}, must-revalidate`,
})

/**
 * Serves the key set on loopback at every path that ends in `/jwks.json`; does not keep the process alive.
 */
export async function startKeySetServer(publication: Publication): Promise<KeySetServer> {
  const server = createLoopbackServer((request, response) => {
    if (request.url?.endsWith('/jwks.json')) {
      answer(publication, response).catch(() => response.destroy())
    } else response.writeHead(404).end()
  })
  return { url: await listenOnLoopback(server), close: () => closeServer(server) }
}

async function answer(publication: Publication, response: ServerResponse): Promise<void> {
  await countAndDelay(publication, { ref: false })
  response.writeHead(200, headersOf(publication)).end(JSON.stringify(publication.document()))
}

/** Answers like the server, without a network. */
export function inProcessFetch(publication: Publication): typeof globalThis.fetch {
  return async (_input, init) => {
    // The wait keeps the process alive, as the socket of a real `fetch` does.
    await countAndDelay(publication, init?.signal ? { signal: init.signal } : {})
    return new Response(JSON.stringify(publication.document()), { headers: headersOf(publication) })
  }
}

/** Counts the request and waits; rejects if the key set is down. */
async function countAndDelay(publication: Publication, wait: TimerOptions): Promise<void> {
  publication.fetches += 1
  if (publication.delayMs > 0) await sleep(publication.delayMs, undefined, wait)
  if (publication.isDown) throw new Error('the key set of the test issuer is down')
}
