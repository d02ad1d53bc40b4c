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
  /** `WWW-Authenticate` and `Retry-After`, where they were sent. */
  readonly challenge: string | undefined
  readonly retryAfter: string | undefined
}

export interface Receiver {
  readonly server: Server
  readonly port: number
  readonly url: string
  /** How often the handler has run. */
  readonly handled: number
  /** What came to `next(error)`. */
  readonly errors: readonly unknown[]
  /** The whole answer but its `Date`, from a socket. */
  raw(request?: RawRequest): Promise<string>
  /** The same for one value of the `Authorization` header. */
  rawWith(authorization: string): Promise<string>
  /** One request with this bearer token, or without any. */
  call(token?: string, init?: RequestInit & { path?: string }): Promise<Reply>
  close(): Promise<void>
}

export interface ReceiverOptions {
  readonly express: ExpressModule
  /** Puts what is tested into the app. */
  readonly mount: (app: Express) => void
  /** By default a 200. */
  readonly handler?: RequestHandler
  /** Puts the handler behind it, by default for every request. */
  readonly route?: (app: Express, handler: RequestHandler) => void
  /** By default an answer with `FAULT_STATUS`. */
  readonly answerError?: ErrorRequestHandler
  readonly maxHeaderSize?: number | undefined
}

/** What an error that reaches the end of the app is answered with. */
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

/** A real server with an Express app of its own. */
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
  const note: ErrorRequestHandler = (error, _request, _response, next) => {
    errors.push(error)
    recordOutput('an error that came to next(error)', error)
    next(error)
  }
  mount(app)
  route(app, counted)
  app.use(note, answerError)
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

/** A receiver with nothing but this middleware. */
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
