import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { wrongWiring } from '../base/decision/service-auth-error.js'
import { hasFunctions } from '../base/options.js'

/**
 * An Express `RequestHandler` that fits every route: it leaves the types of parameters, query and
 * bodies to the handlers beside it.
 */
export type AnyRouteHandler = <
  Params,
  ResponseBody,
  RequestBody,
  Query,
  // biome-ignore lint/suspicious/noExplicitAny: the bound that Express's own types have
  Locals extends Record<string, any>,
>(
  request: Request<Params, ResponseBody, RequestBody, Query, Locals>,
  response: Response<ResponseBody, Locals>,
  next: NextFunction,
) => void

/** What express-ws passes to the handlers of `app.ws` in place of a request. */
interface WebSocketLike {
  readonly readyState: number
  send(data: string): void
  close(code: number): void
}

/** RFC 6455, section 7.4.1: the server cannot fulfil the request. */
const INTERNAL_ERROR = 1011

/**
 * Makes a middleware of a handler that reads no parameters of a route. `by` is its name in errors. Without `next` the
 * middleware throws a `TypeError`: it was called where it should have been passed.
 */
export const fitAnyRoute = (by: string, handler: RequestHandler): AnyRouteHandler =>
  ((request: Request, response: Response, next: NextFunction | undefined) => {
    if (typeof next !== 'function') {
      throw new TypeError(
        `${by} was called without a request: pass the middleware itself, app.use(auth) and not app.use(auth())`,
      )
    }
    if (isWebSocket(request)) {
      request.close(INTERNAL_ERROR)
      next(
        wrongWiring(
          `${by} was given a WebSocket in place of the request: put it before app.ws as app.use(path, …), where it gets the request for the upgrade`,
        ),
      )
      return undefined
    }
    return handler(request, response, next)
  }) as AnyRouteHandler

const isWebSocket = (value: object): value is WebSocketLike =>
  'readyState' in value && hasFunctions(value, ['send', 'close'])
