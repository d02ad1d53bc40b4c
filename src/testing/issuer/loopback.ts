import { once } from 'node:events'
import type { RequestListener, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { http } from '../../base/node-http.js'

const HOST = '127.0.0.1'

/** A server that does not keep the process alive. */
export function createLoopbackServer(listener: RequestListener): Server {
  const server = http.createServer(listener)
  server.on('connection', (socket) => socket.unref())
  return server
}

/** Listens on loopback and returns the URL. Port 0 takes a free one. @throws Error (as a rejection) if the port is taken. */
export async function listenOnLoopback(server: Server, port = 0): Promise<string> {
  server.listen(port, HOST)
  await once(server, 'listening')
  server.unref()
  return `http://${HOST}:${portOf(server)}`
}

export const portOf = (server: Server): number => (server.address() as AddressInfo).port

/** Refuses connections, and cuts those that are open. */
export async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return
  // The server is unref'ed: without this, the process could end before `close` resolves.
  server.ref()
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

const MAX_DELAY_MS = 600_000

/** Checks the argument of the function `name`. @throws TypeError */
export function delayOf(name: string, ms: number): number {
  if (typeof ms === 'number' && ms >= 0 && ms <= MAX_DELAY_MS) return ms
  throw new TypeError(`${name}: ms must be a number from 0 to ${MAX_DELAY_MS}`)
}
