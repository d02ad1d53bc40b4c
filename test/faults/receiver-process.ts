import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { until } from '../support/until.js'
import type { Stop } from './stops.js'

/** A receiver in a process of its own. */
export interface ReceiverProcess {
  readonly port: number
  /** Resolves once so many requests have stopped there, or such requests have been closed. */
  reached(place: Stop | 'closed', requests?: number): Promise<void>
  /** Lets everything go on that has stopped. */
  goOn(): void
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>
}

const PROGRAM = fileURLToPath(new URL('receiver.ts', import.meta.url))

export async function launchReceiver(
  environment: Readonly<Record<string, string>>,
): Promise<ReceiverProcess> {
  const child = fork(PROGRAM, {
    execArgv: ['--import', 'tsx'],
    env: { ...process.env, ...environment },
  })
  const exited = once(child, 'exit')
  let port = 0
  const arrivals = new Map<string, number>()
  const countOf = (place: string): number => arrivals.get(place) ?? 0
  child.on('message', (message: { port: number } | { at: string }) => {
    if ('port' in message) port = message.port
    else arrivals.set(message.at, countOf(message.at) + 1)
  })
  await Promise.race([once(child, 'message'), exited])
  if (port === 0) throw new Error('the receiver ended before it listened')
  return {
    port,
    async reached(place, requests = 1) {
      await until(`${requests} at "${place}"`, async () => countOf(place) >= requests)
      arrivals.set(place, countOf(place) - requests)
    },
    goOn: () => void child.send('go on'),
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
