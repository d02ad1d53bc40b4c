import type { FromReceiver } from '../messages.js'

/** Tells the parent; what cannot be told any more is lost, for this process is about to end. */
export function send(message: FromReceiver, sent: () => void = () => undefined): void {
  if (process.connected) process.send?.(message, sent)
  else sent()
}
