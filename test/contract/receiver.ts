import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express5, { type Express, type RequestHandler } from 'express'
import { type ServiceAuth, type ServiceAuthPolicy, serviceAuth } from 'express-service-auth'
import express4 from 'express4'
import { onTestFinished } from 'vitest'
import { type RawRequest, rawRequest } from '../support/raw-request.js'

/** Both majors that the package promises to work with. */
export const EXPRESS_MAJORS: readonly { major: string; express: typeof express5 }[] = [
  { major: 'Express 4', express: express4 as unknown as typeof express5 },
  { major: 'Express 5', express: express5 },
]

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface Receiver {
  readonly port: number
  readonly url: string
  /** How often a request has got past everything that was mounted. */
  readonly handled: number
  /** What came to `next(error)`. */
  readonly errors: readonly unknown[]
  /** The whole answer but its `Date`, from a socket. */
  raw(request?: RawRequest): Promise<string>
  /** The same for one value of the `Authorization` header. */
  rawWith(authorization: string): Promise<string>
  /** One request with this bearer token, or without any. */
  call(token?: string, init?: RequestInit & { path?: string }): Promise<Reply>
}

interface ReceiverOptions {
  readonly express: typeof express5
  /** Puts what is tested into the app; behind it every request is answered with 200. */
  readonly mount: (app: Express) => void
  readonly handler?: RequestHandler
  readonly maxHeaderSize?: number
}

/** What an error that reaches the end of the app is answered with. */
export const FAULT_STATUS = 599

/** A real server with an Express app of its own, closed when the test is over. */
export async function startReceiver(options: ReceiverOptions): Promise<Receiver> {
  const app = options.express()
  const errors: unknown[] = []
  let handled = 0
  options.mount(app)
  app.use((request, response, next) => {
    handled += 1
    if (options.handler === undefined) response.status(200).json({ ok: true })
    else options.handler(request, response, next)
  })
  app.use(((error, _request, response, _next) => {
    errors.push(error)
    response.status(FAULT_STATUS).end()
  }) satisfies import('express').ErrorRequestHandler)
  const { maxHeaderSize } = options
  const server = createServer(maxHeaderSize === undefined ? {} : { maxHeaderSize }, app)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const raw = (request?: RawRequest): Promise<string> => rawRequest(port, request)
  return {
    port,
    url,
    get handled() {
      return handled
    },
    errors,
    raw,
    rawWith: (authorization) => raw({ headers: [`Authorization: ${authorization}`] }),
    async call(token, { path = '/', ...init } = {}) {
      const headers = new Headers(init.headers)
      if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
      const response = await fetch(`${url}${path}`, { ...init, headers })
      return { status: response.status, headers: response.headers, text: await response.text() }
    },
  }
}

/** A `serviceAuth` that is closed when the test is over. */
export function authFor(policy: ServiceAuthPolicy): ServiceAuth {
  const auth = serviceAuth(policy)
  onTestFinished(() => auth.close())
  return auth
}
