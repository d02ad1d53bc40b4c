/** A record as an operator sees it. */
export interface RecordView {
  /** 0 where it cannot be read. */
  readonly fence: number
  readonly fingerprint?: string
  /**
   * `unreadable`: the whole record with a fence of 0, otherwise its result. `freed`: nothing has
   * happened, the key is free.
   */
  readonly state: 'running' | 'abandoned' | 'finished' | 'not_stored' | 'freed' | 'unreadable'
  /** Seconds since the epoch. */
  readonly begunAt?: number
  /** Milliseconds. */
  readonly leaseLeftMs?: number
  /** Milliseconds until the record is forgotten. */
  readonly expiresInMs?: number
  /** Bytes. */
  readonly resultBytes?: number
  /** The id of the key by which the result is, or would be, encrypted. */
  readonly keyId?: string
}

/** How an operator ends what nobody else can. */
export type Resolution =
  /** Nothing has happened: the next retry runs. */
  | { readonly type: 'freed' }
  /** It has happened: retries get this answer, encoded as in `settle`. */
  | { readonly type: 'finished'; readonly result: Uint8Array }

/** What a store can do beside, so that an operator can settle a write whose outcome nobody knows. */
export interface RecordKeeper {
  /** What is known of the record; `undefined` when there is none. */
  inspect(record: string): Promise<RecordView | undefined>
  /**
   * Ends an abandoned record either way, one whose result is not stored or cannot be read as
   * `finished`, one that cannot be read as `freed`. `false`, and nothing changes, for another fence,
   * a living lease or another state. What it leaves is kept for at least a day, so that an old run
   * cannot write its record anew.
   */
  resolve(record: string, fence: number, as: Resolution): Promise<boolean>
}
