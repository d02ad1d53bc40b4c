import type { RequestHandler } from 'express'
import {
  type OAuth2Policy,
  type ServiceAuth,
  type ServiceAuthPolicy,
  serviceAuth,
} from 'express-service-auth'
import { onTestFinished } from 'vitest'
import type { ExpressModule } from './express-majors.js'
import { openReceiver, type Receiver, type ReceiverOptions } from './open-receiver.js'
import { type OrdersOptions, openOrders } from './order-receiver.js'

export { behind, type Receiver } from './open-receiver.js'

/** Starts a receiver, which is closed after the test. */
export async function startReceiver(options: ReceiverOptions): Promise<Receiver> {
  const receiver = await openReceiver(options)
  onTestFinished(() => receiver.close())
  return receiver
}

/** Starts a receiver whose requests pass these middlewares, and which is closed after the test. */
export const startBehind = (
  express: ExpressModule,
  ...guards: RequestHandler[]
): Promise<Receiver> => startReceiver({ express, mount: (app) => app.use(...guards) })

/** Starts a receiver of orders, which is closed after the test. */
export async function startOrders(options: OrdersOptions): Promise<Receiver> {
  const receiver = await openOrders(options)
  onTestFinished(() => receiver.close())
  return receiver
}

/** Creates a `serviceAuth`, which is closed after the test. */
export function authFor(policy: ServiceAuthPolicy | OAuth2Policy): ServiceAuth {
  const auth = serviceAuth(policy)
  onTestFinished(() => auth.close())
  return auth
}
