import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A receiver in a process of its own, which can be killed and comes back on the same port. */
export interface ReceiverProcess {
  readonly port: number
  /** SIGKILL, then a new process. */
  replace(): Promise<void>
  stop(): Promise<void>
}

const PROGRAM = fileURLToPath(new URL('receiver.ts', import.meta.url))

export async function startReceiver(
  port: number,
  environment: Readonly<Record<string, string>>,
): Promise<ReceiverProcess> {
  let child = await launch(port, environment)
  const kill = async (): Promise<void> => {
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  return {
    port,
    async replace() {
      await kill()
      child = await launch(port, environment)
    },
    stop: kill,
  }
}

async function launch(
  port: number,
  environment: Readonly<Record<string, string>>,
): Promise<ChildProcess> {
  const child = fork(PROGRAM, {
    execArgv: ['--import', 'tsx'],
    env: { ...process.env, ...environment, PORT: String(port) },
  })
  const failed = once(child, 'exit').then(([code]) => {
    throw new Error(`the receiver ended with ${code} before it listened`)
  })
  await Promise.race([once(child, 'message'), failed])
  failed.catch(() => {})
  return child
}
