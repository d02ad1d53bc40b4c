import { once } from 'node:events'
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Served {
  readonly server: Server
  readonly port: number
  readonly url: string
  /** Stops the server and breaks open connections. Safe to call twice. */
  close(): Promise<void>
}

/** Serves on a free port of 127.0.0.1. */
export async function serve(
  listener: RequestListener,
  options: ServerOptions & { port?: number } = {},
): Promise<Served> {
  const { port: wanted = 0, ...settings } = options
  const server = createServer(settings, listener)
  server.listen(wanted, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    server,
    port,
    url: `http://127.0.0.1:${port}`,
    async close() {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
