import { type Launched, launch } from '../support/process/launch.js'

/** A receiver in a process of its own, which can be killed and comes back on the same port. */
export interface ReceiverProcess {
  readonly port: number
  /** SIGKILL, then a new process. */
  replace(): Promise<void>
  stop(): Promise<void>
}

/** @param program what runs in it */
export async function startReceiver(
  program: URL,
  port: number,
  environment: Readonly<Record<string, string>>,
): Promise<ReceiverProcess> {
  const start = (): Promise<Launched<unknown>> =>
    launch(program, { env: { ...environment, PORT: String(port) } })
  let running = await start()
  return {
    port,
    async replace() {
      await running.kill()
      running = await start()
    },
    stop: () => running.kill(),
  }
}
