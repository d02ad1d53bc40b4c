import type { Express, RequestHandler } from 'express'
import type { BackendSdk, SessionRequest } from '../core/backend-sdk.js'
import type { ExpressModule } from './express-majors.js'
import { openReceiver, type Receiver } from './open-receiver.js'

/** Answers with the user of the request's session. */
const answerUser: RequestHandler = (request: SessionRequest, response) => {
  response.json({ user: request.session?.getUserId() ?? null })
}

export interface SessionReceiverOptions {
  readonly express: ExpressModule
  readonly sdk: BackendSdk
  /** A middleware before the SDK's routes. */
  readonly before?: RequestHandler | undefined
  readonly mount: (app: Express) => void
  /** Default: answers with the user of the session. */
  readonly handler?: RequestHandler
}

/** Opens an app in the order that the SDK requires: its routes, what is tested, its error handler. */
export function openSessionReceiver(options: SessionReceiverOptions): Promise<Receiver> {
  const { express, sdk, before, mount, handler = answerUser } = options
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
