import { once } from 'node:events'
import { Agent, createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type RequestHandler } from 'express'

export interface Answer {
  readonly status: number
  readonly challenge: string | undefined
  readonly retryAfter: string | undefined
  readonly ms: number
}

export interface Receiver {
  readonly port: number
  /** `GET /` with this token. */
  call(token: string): Promise<Answer>
  close(): Promise<void>
}

/** An app behind one middleware, reached over real connections. */
export async function startReceiver(middleware: RequestHandler): Promise<Receiver> {
  const app = express()
  app.use(middleware, (_request, response) => {
    response.sendStatus(200)
  })
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const agent = new Agent({ keepAlive: true, maxSockets: 256 })

  return {
    port,
    call(token) {
      const startedAt = performance.now()
      const headers = { authorization: `Bearer ${token}` }
      return new Promise((resolve, reject) => {
        const request = httpRequest({ port, host: '127.0.0.1', agent, headers }, (response) => {
          const { statusCode: status = 0, headers } = response
          response.resume().on('error', reject)
          response.on('end', () => {
            const challenge = headers['www-authenticate']
            const retryAfter = headers['retry-after']
            resolve({ status, challenge, retryAfter, ms: performance.now() - startedAt })
          })
        })
        request.on('error', reject).end()
      })
    },
    async close() {
      agent.destroy()
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
