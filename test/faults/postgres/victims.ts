import { type Launched, launch } from '../../support/launch.js'
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

export interface Victim {
  readonly port: number
  /** Resolves once a request has stopped there. */
  reached(stop: Stop): Promise<void>
  /** Lets everything go on that has stopped. */
  goOn(): void
  /** SIGSTOP, SIGCONT. */
  freeze(): void
  thaw(): void
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>
}

const PROGRAM = new URL('victim.ts', import.meta.url)

/** Starts a receiver in a process of its own. */
export async function launchVictim(
  cell: Cell,
  given: { readonly url: string; readonly issuer: string; readonly transactionMs: number },
): Promise<Victim> {
  const { child, greeting, kill }: Launched<{ port: number }> = await launch(PROGRAM, {
    env: {
      ADAPTER: cell.adapter.name,
      EXPRESS: cell.major,
      DATABASE_URL: given.url,
      ISSUER: given.issuer,
      TRANSACTION_MS: String(given.transactionMs),
    },
  })
  const arrivals = new Set<string>()
  child.on('message', ({ at }: { at: string }) => void arrivals.add(at))
  return {
    port: greeting.port,
    async reached(stop) {
      await until(`a request at "${stop}"`, async () => arrivals.has(stop))
    },
    goOn: () => void child.send('go on'),
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    kill,
  }
}
