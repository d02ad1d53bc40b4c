import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { http } from '../../base/node-http.js'

const HOST = '127.0.0.1'

/** A server on loopback that does not keep the process alive. */
export interface LoopbackServer {
  readonly url: string
  /** Ends `stop()`, at the same address. @throws Error (as a rejection) if the port was taken meanwhile. */
  start(): Promise<void>
  /** Refuses connections, and cuts those that are open. */
  stop(): Promise<void>
}

/** Starts a server. Port 0 takes a free one. @throws Error (as a rejection) if the port is taken. */
export async function serveOnLoopback(
  listener: RequestListener,
  port = 0,
): Promise<LoopbackServer> {
  const server = http.createServer(listener)
  server.on('connection', (socket) => socket.unref())
  let ownPort = port
  async function start(): Promise<void> {
    if (server.listening) return
    server.listen(ownPort, HOST)
    await once(server, 'listening')
    server.unref()
    ownPort = (server.address() as AddressInfo).port
  }
  await start()
  return {
    url: `http://${HOST}:${ownPort}`,
    start,
    async stop() {
      if (!server.listening) return
      // The server is unref'ed: without this, the process could end before `close` resolves.
      server.ref()
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

const MAX_DELAY_MS = 600_000

/** Checks the argument of the function `name`. @throws TypeError */
export function delayOf(name: string, ms: number): number {
  if (typeof ms === 'number' && ms >= 0 && ms <= MAX_DELAY_MS) return ms
  throw new TypeError(`${name}: ms must be a number from 0 to ${MAX_DELAY_MS}`)
}
