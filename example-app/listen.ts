import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { StartError } from './start-error.js'

/** The services of this app use plain HTTP, so they listen only on this machine. */
const HOST = '127.0.0.1'

export interface RunningServer {
  readonly url: string
  close(): Promise<void>
}

/**
 * Serves on the loopback address. Port 0 selects a free one. A connection is closed after
 * `maxRequestsPerSocket` requests; 0, the default, sets no limit.
 * @throws {StartError} if the port is in use or not permitted
 */
export async function listen(
  handler: RequestListener,
  port: number,
  { maxRequestsPerSocket = 0 }: { readonly maxRequestsPerSocket?: number } = {},
): Promise<RunningServer> {
  const server = createServer(handler)
  server.maxRequestsPerSocket = maxRequestsPerSocket
  const url = await bind(server, port)
  const close = (): Promise<void> =>
    new Promise((done) => {
      server.close(() => done())
      server.closeAllConnections()
    })
  return { url, close }
}

/**
 * Like `listen`, for a server that the caller creates and closes; resolves with its address.
 * @throws {StartError} like `listen`
 */
export function bind(server: Server, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new StartError(explain(port, error), { cause: error }))
    })
    server.listen(port, HOST, () => {
      resolve(`http://${HOST}:${(server.address() as AddressInfo).port}`)
    })
  })
}

function explain(port: number, error: NodeJS.ErrnoException): string {
  if (error.code === 'EADDRINUSE') return `port ${port} is in use on ${HOST}; choose another one`
  if (error.code === 'EACCES') return `port ${port} on ${HOST} needs rights that this user lacks`
  return `cannot listen on ${HOST}:${port} (${error.code ?? error.message})`
}
