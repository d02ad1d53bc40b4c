/** A record as an operator sees it. */
export interface RecordView {
  /** 0 where the whole record cannot be read. */
  readonly fence: number
  /** The digest of what must be identical in a retry. */
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
  /** Milliseconds until the record is forgotten; absent when it never is. */
  readonly expiresInMs?: number
  /** Bytes. */
  readonly resultBytes?: number
  /** The id of the key by which the result is, or would be, encrypted. */
  readonly keyId?: string
  /** Why an operator has freed or forgotten the record. */
  readonly reason?: string
  /** The version of a record that this version of the package cannot read. */
  readonly recordVersion?: string
}

/**
 * Whether a stored result can be read. It gets the record's fingerprint, and must not reject for a result
 * that cannot be read.
 */
export type CanRead = (result: Uint8Array, fingerprint: string) => boolean | Promise<boolean>

/** How an operator settles a record whose outcome is unknown. */
export type Resolution =
  /** Nothing has happened: the next retry runs. */
  | {
      readonly type: 'freed'
      /** 1 to 256 characters, stored with the record. */
      readonly reason?: string | undefined
    }
  /** It has happened, and must happen again: the next request runs. */
  | {
      readonly type: 'forgotten'
      /** 1 to 256 characters, stored with the record. */
      readonly reason?: string | undefined
    }
  /** It has happened: retries get this answer, encoded as in `settle`. */
  | {
      readonly type: 'finished'
      readonly result: Uint8Array
      /** As in `inspect`. */
      readonly canRead?: CanRead
    }

/** Optional functions of a store that let an operator settle a write whose outcome is unknown. */
export interface RecordKeeper {
  /**
   * Returns the record; `undefined` if there is none. A store around this one that encodes results
   * differently passes `canRead`. Without it, an encrypted result counts as readable.
   *
   * @throws TypeError (as a rejection) if an argument is of the wrong type.
   */
  inspect(recordId: string, canRead?: CanRead): Promise<RecordView | undefined>
  /**
   * Ends an abandoned record as `freed` or `finished`, one whose result is not stored or cannot be read as
   * `finished`, one that cannot be read as `freed`, and any record of a run that has finished as `forgotten`,
   * which frees its key. `false`, and nothing changes, for another fence,
   * an active lease, another state or a record of another version. The record that it writes is stored for
   * at least a day, whatever later runs do, so that an old run cannot write its record again.
   *
   * @throws TypeError (as a rejection) if an argument is of the wrong type or out of its range.
   */
  resolve(recordId: string, fence: number, as: Resolution): Promise<boolean>
}
