import { once } from 'node:events'
import { launch } from '../support/process/launch.js'
import { until } from '../support/until.js'
import type { Stop } from './stops.js'

/** A receiver in a process of its own. */
export interface ReceiverProcess {
  readonly port: number
  /** Resolves once so many requests have stopped there, or such requests have been closed. */
  reached(place: Stop | 'closed', requests?: number): Promise<void>
  /** Lets everything go on that has stopped. */
  goOn(): void
  signal(signal: 'SIGTERM' | 'SIGINT'): void
  /** Resolves with the exit code, once the process is gone. */
  readonly exited: Promise<number | null>
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>
}

const PROGRAM = new URL('receiver.ts', import.meta.url)

export async function launchReceiver(
  environment: Readonly<Record<string, string>>,
): Promise<ReceiverProcess> {
  const { child, greeting, kill } = await launch<{ port: number }>(PROGRAM, { env: environment })
  const exited = once(child, 'exit').then(([code]) => code)
  const arrivals = new Map<string, number>()
  const countOf = (place: string): number => arrivals.get(place) ?? 0
  child.on('message', ({ at }: { at: string }) => arrivals.set(at, countOf(at) + 1))
  return {
    port: greeting.port,
    async reached(place, requests = 1) {
      await until(`${requests} at "${place}"`, async () => countOf(place) >= requests)
      arrivals.set(place, countOf(place) - requests)
    },
    goOn: () => void child.send('go on'),
    signal: (signal) => void child.kill(signal),
    exited,
    kill,
  }
}
