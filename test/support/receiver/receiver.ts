import {
  type OAuth2Policy,
  type ServiceAuth,
  type ServiceAuthPolicy,
  serviceAuth,
} from 'express-service-auth'
import { onTestFinished } from 'vitest'
import { openReceiver, type Receiver, type ReceiverOptions } from './open-receiver.js'

export { behind, type Receiver } from './open-receiver.js'

/** Starts a receiver, which is closed after the test. */
export async function startReceiver(options: ReceiverOptions): Promise<Receiver> {
  const receiver = await openReceiver(options)
  onTestFinished(() => receiver.close())
  return receiver
}

/** Creates a `serviceAuth`, which is closed after the test. */
export function authFor(policy: ServiceAuthPolicy | OAuth2Policy): ServiceAuth {
  const auth = serviceAuth(policy)
  onTestFinished(() => auth.close())
  return auth
}
