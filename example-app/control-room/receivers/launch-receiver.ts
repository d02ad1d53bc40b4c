import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Beginning, FromReceiver, ToReceiver } from './messages.js'
import { startProgram } from './start-program.js'

/** A receiver's process. */
export interface LaunchedReceiver {
  readonly pid: number | undefined
  send(message: ToReceiver): void
  /** SIGKILL; resolves when the process is gone, and all its messages are read. */
  kill(): Promise<void>
}

export interface ReceiverListeners {
  receive(message: FromReceiver): void
  /** ReceiverReport once, of whatever end. */
  onGone(): void
}

const PROGRAM = fileURLToPath(new URL('./child/main.ts', import.meta.url))

/** Starts a receiver. */
export function launchReceiver(
  beginning: Beginning,
  { receive, onGone }: ReceiverListeners,
  program: string = PROGRAM,
): LaunchedReceiver {
  const child = startProgram(program)
  const gone = once(child, 'close').catch(() => undefined)
  void gone.then(onGone)
  child.on('message', (message) => receive(message as FromReceiver))
  // A process that cannot be started, or takes no message any more, is gone.
  child.on('error', () => undefined)
  sendTo(child, beginning)
  return {
    pid: child.pid,
    send: (message) => sendTo(child, message),
    async kill() {
      child.kill('SIGKILL')
      await gone
    },
  }
}

function sendTo(child: ChildProcess, message: object): void {
  if (child.connected) child.send(message, () => undefined)
}
