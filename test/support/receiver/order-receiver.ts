import type { ErrorRequestHandler, Express, RequestHandler } from 'express'
import {
  type CoupledIdempotencyOptions,
  type CoupledStore,
  type IdempotencyOptions,
  type IdempotencyStore,
  type LeasedIdempotencyOptions,
  requireIdempotencyKey,
  type ServiceAuthPolicy,
  serviceAuth,
} from 'express-service-auth'
import { issuer } from '../issuer/issuer.js'
import type { ExpressModule } from './express-majors.js'
import { openReceiver, type Receiver } from './open-receiver.js'

export interface OrdersOptions {
  readonly express: ExpressModule
  /** Without a store, the app has no `requireIdempotencyKey`. */
  readonly store?: IdempotencyStore | CoupledStore
  readonly options?: Partial<LeasedIdempotencyOptions> | Partial<CoupledIdempotencyOptions>
  /** Middlewares before `serviceAuth`. */
  readonly outer?: readonly RequestHandler[]
  /** Middlewares between `requireIdempotencyKey` and the handler. */
  readonly inner?: readonly RequestHandler[]
  /** Replaces fields of the policy. */
  readonly policy?: Partial<ServiceAuthPolicy>
  readonly parsers?: readonly RequestHandler[]
  readonly handler: RequestHandler
  /** Adds something after the route, such as error handlers. */
  finish?(app: Express): void
}

const CALLERS = ['billing', 'reporting']

/** Leaves the answer to Express. */
const passOn: ErrorRequestHandler = (error, _request, _response, next) => next(error)

/** Opens a route `/orders/:id` for all methods behind `serviceAuth` and, with a store, `requireIdempotencyKey`. */
export function openOrders(given: OrdersOptions): Promise<Receiver> {
  const { express, store, options, handler, outer = [], inner = [] } = given
  const { parsers = [express.json()] } = given
  const keyed = { ...options, store } as IdempotencyOptions
  const key = store === undefined ? [] : [requireIdempotencyKey(keyed)]
  return openReceiver({
    express,
    handler,
    answerError: passOn,
    mount(app) {
      app.set('env', 'test').disable('x-powered-by')
      for (const middleware of outer) app.use(middleware)
      app.use(serviceAuth(issuer.policy({ callers: CALLERS, ...given.policy })))
    },
    route(app, counted) {
      app.all('/orders/:id', ...parsers, ...key, ...inner, counted)
      given.finish?.(app)
    },
  })
}
