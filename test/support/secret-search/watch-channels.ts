import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { recordOutput } from './session.js'

/** All channels of the package. `onDecision` gets the event objects of the channel. */
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

/** Called at the end of a test file, and at the top of a file that tests channels without subscribers. */
export function leaveChannels(): void {
  for (const name of CHANNELS) unsubscribe(name, record)
}
