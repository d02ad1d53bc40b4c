import type { Server } from 'node:http'
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import { type RawRequest, rawRequest } from '../network/raw-exchange.js'
import { recordOutput } from '../secret-search/index.js'
import type { ExpressModule } from './express-majors.js'
import { serve } from './serve.js'

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The header `WWW-Authenticate`. */
  readonly challenge: string | undefined
  readonly retryAfter: string | undefined
}

export interface Receiver {
  readonly server: Server
  readonly port: number
  readonly url: string
  /** The number of calls of the handler. */
  readonly handled: number
  /** The errors passed to `next(error)`. */
  readonly errors: readonly unknown[]
  /** Sends a request; resolves with all bytes of the answer except its `Date`. */
  raw(request?: RawRequest): Promise<string>
  /** Sends a request with this value of `Authorization`; resolves as `raw` does. */
  rawWith(authorization: string): Promise<string>
  /** Sends a request with this bearer token, or without one. */
  call(token?: string, init?: RequestInit & { path?: string }): Promise<Reply>
  close(): Promise<void>
}

export interface ReceiverOptions {
  readonly express: ExpressModule
  /** Adds the middlewares under test to the app. */
  readonly mount: (app: Express) => void
  /** Default: answers 200. */
  readonly handler?: RequestHandler
  /** Adds the handler to the app. Default: for every request. */
  readonly route?: (app: Express, handler: RequestHandler) => void
  /** Default: answers with `FAULT_STATUS`. */
  readonly answerError?: ErrorRequestHandler
  readonly maxHeaderSize?: number | undefined
}

/** The status of the answer to an error that reaches the end of the app. */
export const FAULT_STATUS = 599

const answerOk: RequestHandler = (_request, response) => {
  response.status(200).json({ ok: true })
}

const routeAll = (app: Express, handler: RequestHandler): void => {
  app.use(handler)
}

const answerFault: ErrorRequestHandler = (_error, _request, response, _next) => {
  response.status(FAULT_STATUS).end()
}

/** Starts a server with a new Express app. */
export async function openReceiver(options: ReceiverOptions): Promise<Receiver> {
  const { mount, handler = answerOk, route = routeAll, maxHeaderSize } = options
  const { answerError = answerFault } = options
  const app = options.express()
  const errors: unknown[] = []
  let handled = 0
  const counted: RequestHandler = (request, response, next) => {
    handled += 1
    return handler(request, response, next)
  }
  const recordError: ErrorRequestHandler = (error, _request, _response, next) => {
    errors.push(error)
    recordOutput('an error that came to next(error)', error)
    next(error)
  }
  mount(app)
  route(app, counted)
  app.use(recordError, answerError)
  const { server, port, url, close } = await serve(
    app,
    maxHeaderSize === undefined ? {} : { maxHeaderSize },
  )
  const raw = (request?: RawRequest): Promise<string> => rawRequest(port, request)
  return {
    server,
    port,
    url,
    get handled() {
      return handled
    },
    errors,
    raw,
    rawWith: (authorization) => raw({ headers: [`Authorization: ${authorization}`] }),
    call: (token, init) => fetchReply(url, token, init),
    close,
  }
}

/** The options of a receiver with this middleware only. */
export const behind = (guard: RequestHandler): ReceiverOptions => ({
  express,
  mount: (app) => app.use(guard),
})

async function fetchReply(
  url: string,
  token: string | undefined,
  { path = '/', ...init }: RequestInit & { path?: string } = {},
): Promise<Reply> {
  const sent = new Headers(init.headers)
  if (token !== undefined) sent.set('authorization', `Bearer ${token}`)
  const response = await fetch(`${url}${path}`, { ...init, headers: sent })
  const { status, headers } = response
  return {
    status,
    headers,
    text: await response.text(),
    challenge: headers.get('www-authenticate') ?? undefined,
    retryAfter: headers.get('retry-after') ?? undefined,
  }
}
