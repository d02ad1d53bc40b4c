/** The handler's view of its reservation, as `req.idempotency`. */
export interface IdempotencyContext {
  /** The caller's key, unquoted. */
  readonly key: string
  /** A safe integer that grows with every run of the key: a fencing token for what the run writes. */
  readonly fence: number
  /** Aborts once the run may no longer be the only one with the key. */
  readonly signal: AbortSignal
  /** Says that nothing has happened: the key is freed at the end instead of the result kept. */
  release(): void
}
