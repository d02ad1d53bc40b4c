import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type Express, type RequestHandler } from 'express'
import {
  type IdempotencyOptions,
  type IdempotencyStore,
  requireIdempotencyKey,
  serviceAuth,
} from 'express-service-auth'
import express4 from 'express4'
import { type Issuer, issuer, policyOf } from './issuer.js'

type ExpressModule = typeof express

export interface Variant {
  readonly name: string
  readonly express: ExpressModule
}

/** Express 4 has other types for the same functions. */
export const VARIANTS: readonly Variant[] = [
  { name: 'Express 4', express: express4 as unknown as ExpressModule },
  { name: 'Express 5', express },
]

export interface ReceiverOptions {
  readonly variant: Variant
  /** Without a store the receiver is bare: the same app without the middleware. */
  readonly store?: IdempotencyStore
  readonly options?: Partial<IdempotencyOptions>
  /** Before everything. */
  readonly outer?: readonly RequestHandler[]
  /** Between the key and the handler. */
  readonly inner?: readonly RequestHandler[]
  /** What `serviceAuth` demands otherwise. */
  readonly policy?: { readonly issuer?: string; readonly audience?: string }
  readonly parsers?: readonly RequestHandler[]
  readonly handler: RequestHandler
  /** After the route, error handlers above all. */
  finish?(app: Express): void
}

export interface Receiver {
  readonly port: number
  readonly url: string
  readonly server: Server
  readonly issuer: Issuer
  /** How often the handler has run. */
  runs(): number
  /** What the final error handler has seen, where `finish` is not given. */
  readonly errors: unknown[]
  close(): Promise<void>
}

/** A route `/orders/:id` for all methods behind `serviceAuth` and, given a store, the key. */
export async function startReceiver(given: ReceiverOptions): Promise<Receiver> {
  const { variant, store, options, handler, outer = [], inner = [] } = given
  const { parsers = [variant.express.json()] } = given
  const origin = await issuer()
  const errors: unknown[] = []
  let runs = 0

  const app = variant.express()
  app.set('env', 'test').disable('x-powered-by')
  for (const middleware of outer) app.use(middleware)
  app.use(serviceAuth(policyOf(origin, given.policy)))
  const key = store === undefined ? [] : [requireIdempotencyKey({ store, ...options })]
  const counted: RequestHandler = (request, response, next) => {
    runs += 1
    return handler(request, response, next)
  }
  app.all('/orders/:id', ...parsers, ...key, ...inner, counted)
  given.finish?.(app)
  const note: express.ErrorRequestHandler = (error, _request, _response, next) => {
    errors.push(error)
    next(error)
  }
  app.use(note)

  const served = await serve(app)
  return { ...served, issuer: origin, errors, runs: () => runs }
}

export async function serve(app: Express) {
  const server = createServer(app)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    server,
    port,
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
