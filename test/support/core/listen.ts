import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { PORT_VARIABLES, type PortName, portOf } from './environment.js'
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
 * Like `listen`, for a server that the caller creates and closes; resolves with its address. `variable` is the
 * environment variable that sets the port.
 * @throws {StartError} like `listen`
 */
function bind(server: Server, port: number, variable?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new StartError(explain(port, error, variable), { cause: error }))
    })
    server.listen(port, HOST, () => {
      resolve(`http://${HOST}:${(server.address() as AddressInfo).port}`)
    })
  })
}

/**
 * Checks that the ports of these services are free and differ, before anything is built or connected.
 * @throws {StartError} that names the variable of the port
 */
export async function assertPortsFree(names: readonly PortName[]): Promise<void> {
  const servers: Server[] = []
  try {
    for (const name of names) {
      const server = createTcpServer()
      await bind(server, portOf(name), PORT_VARIABLES[name])
      servers.push(server)
    }
  } finally {
    await Promise.all(servers.map((server) => new Promise((done) => server.close(done))))
  }
}

function explain(port: number, error: NodeJS.ErrnoException, variable?: string): string {
  const remedy = variable === undefined ? 'choose another one' : `set ${variable} to another one`
  if (error.code === 'EADDRINUSE') return `port ${port} is in use on ${HOST}; ${remedy}`
  if (error.code === 'EACCES') {
    return `port ${port} on ${HOST} needs rights that this user lacks; ${remedy}`
  }
  return `cannot listen on ${HOST}:${port} (${error.code ?? error.message})`
}
