import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Beginning, FromReceiver, ToReceiver } from './messages.js'
import { startProgram } from './start-program.js'

/** A receiver's process. */
export interface LaunchedReceiver {
  readonly pid: number | undefined
  send(message: ToReceiver): void
  /** SIGKILL; resolves when the process is gone, and all that it had told is heard. */
  kill(): Promise<void>
}

export interface ReceiverListeners {
  hear(message: FromReceiver): void
  /** Told once, of whatever end. */
  onGone(): void
}

const PROGRAM = fileURLToPath(new URL('./child/main.ts', import.meta.url))

/** Starts a receiver. */
export function launchReceiver(
  beginning: Beginning,
  { hear, onGone }: ReceiverListeners,
  program: string = PROGRAM,
): LaunchedReceiver {
  const child = startProgram(program)
  const gone = once(child, 'close').catch(() => undefined)
  void gone.then(onGone)
  child.on('message', (message) => hear(message as FromReceiver))
  // Whoever cannot be started, or told anything any more, is gone.
  child.on('error', () => undefined)
  tell(child, beginning)
  return {
    pid: child.pid,
    send: (message) => tell(child, message),
    async kill() {
      child.kill('SIGKILL')
      await gone
    },
  }
}

function tell(child: ChildProcess, message: object): void {
  if (child.connected) child.send(message, () => undefined)
}
