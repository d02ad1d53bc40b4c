import type { NextFunction, Request, RequestHandler, Response } from 'express'

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

/** Safe for the handlers of this package, because they read no parameters of a route. */
export const fitAnyRoute = (handler: RequestHandler): AnyRouteHandler => handler as AnyRouteHandler
