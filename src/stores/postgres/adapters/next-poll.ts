import { MessageChannel, type MessagePort } from 'node:worker_threads'

const waiting: (() => void)[] = []
let sender: MessagePort | undefined

/**
 * Resolves in the poll phase of the event loop, which comes before its immediates. A write that postgres.js
 * makes in an immediate is sent by the next one. A connection that closes in between never writes again,
 * nor does its replacement.
 */
export function nextPoll(): Promise<void> {
  sender ??= openChannel()
  sender.postMessage(undefined)
  return new Promise((resolve) => waiting.push(resolve))
}

/** Does not keep the process alive. */
function openChannel(): MessagePort {
  const { port1, port2 } = new MessageChannel()
  port2.on('message', () => waiting.shift()?.())
  port2.unref()
  return port1
}
