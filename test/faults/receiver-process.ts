import { once } from 'node:events'
import { launch } from '../support/process/launch.js'
import { until } from '../support/until.js'
import type { Stop } from './stops.js'

/** A program whose requests stop at places. */
export interface StoppingProcess<Place extends string> {
  /** Resolves once so many requests have stopped there. */
  reached(place: Place, requests?: number): Promise<void>
  /** Lets everything go on that has stopped. */
  goOn(): void
  signal(signal: NodeJS.Signals): void
  /** Resolves with the exit code, once the process is gone. */
  readonly exited: Promise<number | null>
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>
}

/** A receiver in a process of its own. It tells, too, that a request which may stop has been closed. */
export type ReceiverProcess = StoppingProcess<Stop | 'closed'> & { readonly port: number }

/** Starts a program; what it returns has the members of the program's greeting, too. */
export async function launchStopping<Place extends string, Greeting>(
  program: URL,
  env: Readonly<Record<string, string>>,
): Promise<StoppingProcess<Place> & Greeting> {
  const { child, greeting, kill } = await launch<Greeting>(program, { env })
  const exited = once(child, 'exit').then(([code]) => code)
  const arrivals = new Map<string, number>()
  const countOf = (place: string): number => arrivals.get(place) ?? 0
  child.on('message', ({ at }: { at: string }) => arrivals.set(at, countOf(at) + 1))
  return {
    ...greeting,
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
