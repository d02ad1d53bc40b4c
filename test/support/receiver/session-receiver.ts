import type { Express, RequestHandler } from 'express'
import type { BackendSdk, SessionRequest } from '../core/backend-sdk.js'
import type { ExpressModule } from './express-majors.js'
import { openReceiver, type Receiver } from './open-receiver.js'

/** Whose session the request has, as its handler sees it. */
const tellUser: RequestHandler = (request: SessionRequest, response) => {
  response.json({ user: request.session?.getUserId() ?? null })
}

export interface SessionReceiverOptions {
  readonly express: ExpressModule
  readonly sdk: BackendSdk
  /** Before the SDK's own routes. */
  readonly before?: RequestHandler | undefined
  readonly mount: (app: Express) => void
  /** By default tells the user of the session. */
  readonly handler?: RequestHandler
}

/** An app as the SDK wants it: its routes, what is tested, its error handler. */
export function openSessionReceiver(options: SessionReceiverOptions): Promise<Receiver> {
  const { express, sdk, before, mount, handler = tellUser } = options
  return openReceiver({
    express,
    mount(app) {
      if (before !== undefined) app.use(before)
      sdk.mount(app)
      mount(app)
    },
    handler,
    answerError: sdk.errorHandler,
  })
}
