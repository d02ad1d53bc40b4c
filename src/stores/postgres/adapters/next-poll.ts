import { MessageChannel, type MessagePort } from 'node:worker_threads'

const waiting: (() => void)[] = []
let sender: MessagePort | undefined

/**
 * Resolves where the event loop hears from the network, which comes before its immediates. What postgres.js
 * writes in an immediate is sent by the next one. A connection that closes in between never writes again,
 * nor does the one that takes its place.
 */
export function nextPoll(): Promise<void> {
  sender ??= openChannel()
  sender.postMessage(undefined)
  return new Promise((resolve) => waiting.push(resolve))
}

/** Holds no process open. */
function openChannel(): MessagePort {
  const { port1, port2 } = new MessageChannel()
  port2.on('message', () => waiting.shift()?.())
  port2.unref()
  return port1
}
