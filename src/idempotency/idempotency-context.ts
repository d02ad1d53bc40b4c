/** The handler's view of its reservation, as `req.idempotency`. */
export interface IdempotencyContext {
  /** The caller's key, unquoted. */
  readonly key: string
  /** A safe integer that grows with every run of the key: a fencing token for what the run writes. */
  readonly fence: number
  /** Aborts once the run may no longer be the only one with the key. */
  readonly signal: AbortSignal
  /**
   * Frees the key at the end of the run instead of storing the result, because nothing has happened. On a
   * coupled store, such as `postgresStore`, it also rolls back the handler's writes.
   */
  release(): void
}
