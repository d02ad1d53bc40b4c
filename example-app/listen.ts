import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface RunningServer {
  readonly url: string
  close(): Promise<void>
}

/** Lets a server listen on this machine only, for the example speaks plain HTTP; resolves with its address. */
export async function bind(server: Server, port: number): Promise<string> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

export async function listen(handler: RequestListener, port = 0): Promise<RunningServer> {
  const server = createServer(handler)
  const url = await bind(server, port)
  return {
    url,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
