import type { FromReceiver } from '../messages.js'

/** Sends to the parent; a message that cannot be sent is lost, because this process is about to end. */
export function send(message: FromReceiver, sent: () => void = () => undefined): void {
  if (process.connected) process.send?.(message, sent)
  else sent()
}
