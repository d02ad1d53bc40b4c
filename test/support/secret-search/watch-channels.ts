import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { recordOutput } from './session.js'

/** All channels of the package. An event that `onDecision` gets is the very one of the channel. */
const CHANNELS: readonly string[] = [
  'express-service-auth:decision',
  'express-service-auth:keys',
  'express-service-auth:idempotency',
  'express-service-auth:denylist',
  'express-service-auth:store',
  'express-service-auth:migration',
]

const record = (event: unknown, name: string | symbol): void =>
  recordOutput(`the channel ${String(name)}`, event)

export function watchChannels(): void {
  for (const name of CHANNELS) subscribe(name, record)
}

/** For the end of a test file, or for the top of one whose subject is that nobody listens. */
export function leaveChannels(): void {
  for (const name of CHANNELS) unsubscribe(name, record)
}
