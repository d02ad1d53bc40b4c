/** How a handler in a transaction may end, besides what all may do. */
export type CoupledEnding =
  | 'refuses'
  | 'refuses and keeps its writes'
  | 'swallows an error'
  | 'writes late'
  | 'hangs'
  /** Of its transaction, which the server has ended. */
  | 'passes on an error'

/** What happens to Postgres alone. */
export const COUPLED_FAULTS = ['end a backend'] as const
export type CoupledFault = (typeof COUPLED_FAULTS)[number]

/** The store of a coupled story, and its server. */
export interface CoupledRoute {
  /** How long a step of a statement takes, at most, in ms. */
  readonly stepMs: number
  readonly connections: number
  readonly transactionMs: number
  readonly resolveMs: number
  readonly isolation: 'read committed' | 'repeatable read'
  readonly retentionSeconds: number
  readonly sweepSeconds: number | false
  readonly isTokenSpentWithin: boolean
}
