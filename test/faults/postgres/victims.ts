import { type Launched, launch } from '../../support/process/launch.js'
import { until } from '../../support/until.js'
import type { Cell } from './matrix.js'

/** Where a request of a victim stops. */
export type Stop =
  | 'before begin'
  | 'before the write'
  | 'after the write'
  | 'in a statement'
  | 'before the record'
  | 'after COMMIT'

/** One of the receivers of a process. */
export interface VictimCell {
  readonly cell: Cell
  readonly url: string
}

/** What a victim is told of one. */
export interface VictimSetting {
  readonly adapter: string
  /** Of Express. */
  readonly major: string
  readonly url: string
}

/** What a victim says when a request has stopped. */
export interface Arrival {
  readonly at: Stop
  /** Of the receiver. */
  readonly index: number
}

export interface Victim {
  /** Of its receivers, in their order. */
  readonly ports: readonly number[]
  /** That of the first. */
  readonly port: number
  /** Resolves once a request of a receiver, by default of the first, has stopped there. */
  reached(stop: Stop, index?: number): Promise<void>
  /** Lets everything go on that has stopped. */
  goOn(): void
  /** SIGSTOP, SIGCONT. */
  freeze(): void
  thaw(): void
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>
}

const PROGRAM = new URL('victim.ts', import.meta.url)

/** Starts receivers in a process of their own. */
export async function launchVictim(
  cells: readonly VictimCell[],
  given: { readonly issuer: string; readonly transactionMs: number },
): Promise<Victim> {
  const settings = cells.map(
    ({ cell, url }): VictimSetting => ({ adapter: cell.adapter.name, major: cell.major, url }),
  )
  const { child, greeting, kill }: Launched<{ ports: number[] }> = await launch(PROGRAM, {
    env: {
      RECEIVERS: JSON.stringify(settings),
      ISSUER: given.issuer,
      TRANSACTION_MS: String(given.transactionMs),
    },
  })
  const arrivals = new Set<string>()
  child.on('message', ({ at, index }: Arrival) => void arrivals.add(`${at}, ${index}`))
  const [port = 0] = greeting.ports
  return {
    ports: greeting.ports,
    port,
    async reached(stop, index = 0) {
      await until(`a request at "${stop}"`, async () => arrivals.has(`${stop}, ${index}`))
    },
    goOn: () => void child.send('go on'),
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    kill,
  }
}
