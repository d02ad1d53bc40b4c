import {
  type OAuth2Policy,
  type ServiceAuth,
  type ServiceAuthPolicy,
  serviceAuth,
} from 'express-service-auth'
import { onTestFinished } from 'vitest'
import { openReceiver, type Receiver, type ReceiverOptions } from './open-receiver.js'

export { behind, type Receiver } from './open-receiver.js'

/** A receiver that is closed when the test is over. */
export async function startReceiver(options: ReceiverOptions): Promise<Receiver> {
  const receiver = await openReceiver(options)
  onTestFinished(() => receiver.close())
  return receiver
}

/** A `serviceAuth` that is closed when the test is over. */
export function authFor(policy: ServiceAuthPolicy | OAuth2Policy): ServiceAuth {
  const auth = serviceAuth(policy)
  onTestFinished(() => auth.close())
  return auth
}
