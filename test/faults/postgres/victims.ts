import { launchStopping, type StoppingProcess } from '../receiver-process.js'

/** Where a request of a victim stops. */
export type Stop =
  | 'before begin'
  | 'before the write'
  | 'after the write'
  | 'in a statement'
  | 'before the record'
  | 'after COMMIT'

/** What a victim is told of one of its receivers. */
export interface VictimSetting {
  readonly adapter: string
  /** Of Express. */
  readonly major: string
  readonly url: string
}

/** Receivers in a process of their own, with their ports, and that of the first. */
export type Victim = StoppingProcess<Place> & {
  readonly ports: readonly number[]
  readonly port: number
}

/** With the index of its receiver. */
export type Place = `${Stop} of ${number}`

export const launchVictim = (
  receivers: readonly VictimSetting[],
  { issuer, transactionMs }: { readonly issuer: string; readonly transactionMs: number },
): Promise<Victim> =>
  launchStopping(new URL('victim.ts', import.meta.url), {
    RECEIVERS: JSON.stringify(receivers),
    ISSUER: issuer,
    TRANSACTION_MS: String(transactionMs),
  })
