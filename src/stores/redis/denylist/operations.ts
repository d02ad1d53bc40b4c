import type {
  DenylistEntry,
  DenylistTarget,
} from '../../../verification/denylist/denylist-entry.js'

/** What operators do with a live denylist. */
export interface DenylistOperations {
  /**
   * Denies. If the target is denied already, the later end and the later cut-off count. The earlier entry
   * keeps its reason, author and time unless the new one extends it. Resolves with the version that has
   * the entry and with the entry that counts.
   *
   * @throws TypeError when the entry is not valid, has ended, or would be the 10,001st; nothing was
   * written.
   * @throws DenylistUnconfirmed, also when the list has damaged rows; then nothing was written.
   */
  deny(entry: DenylistEntry, options?: DenylistCallOptions): Promise<DenyResult>
  /**
   * Denies 1 to 1000 entries, all or none. Resolves with the entries that count, in the order of the list.
   *
   * @throws TypeError as for one entry; the message has the index.
   * @throws DenylistUnconfirmed
   */
  deny(entries: readonly DenylistEntry[], options?: DenylistCallOptions): Promise<DenyListResult>
  /**
   * Ends an entry, in the list and wherever it is still held. Resolves with the version that has that,
   * and whether the list had the entry.
   *
   * @throws TypeError when the target is not valid, or when 10,000 others were allowed within the last 7
   * days; nothing was written.
   * @throws DenylistUnconfirmed, also when the list has damaged rows; then nothing was written.
   */
  allow(target: DenylistTarget, options?: DenylistCallOptions): Promise<AllowResult>
  /** What is denied at present. @throws ServiceAuthError `unavailable` */
  entries(options?: DenylistCallOptions): Promise<readonly DenylistEntry[]>
  /**
   * Who receives the list; who has died, until it was silent for its `maxStaleSeconds`.
   *
   * @throws ServiceAuthError `unavailable`
   */
  receivers(options?: DenylistCallOptions): Promise<readonly DenylistReceiver[]>
  /** The version of the list, and the time of its server. @throws ServiceAuthError `unavailable` */
  version(options?: DenylistCallOptions): Promise<DenylistVersion>
  /** The rows that no receiver can read; it reads the whole list. @throws ServiceAuthError `unavailable` */
  damagedRows(options?: DenylistCallOptions): Promise<readonly DamagedRow[]>
  /**
   * Removes these rows, except those that have changed since they were read.
   *
   * @throws DenylistUnconfirmed
   */
  removeRows(rows: readonly DamagedRow[], options?: DenylistCallOptions): Promise<RemoveResult>
}

/** Options of a call of the denylist. */
export interface DenylistCallOptions {
  /** Milliseconds, 1 to 60,000, until which it is asked again and again. Default: 1000. */
  readonly timeoutMs?: number | undefined
}

/** An entry that `deny` was called with, after the call. */
export interface DeniedEntry {
  /** The entry that counts, with its own reason, author and time. */
  readonly entry: DenylistEntry
  /** Whether an entry from before the call counts: it ends as late, and its cut-off is as late. */
  readonly isEarlier: boolean
}

/** What `deny` has written. */
export interface DenyResult extends DeniedEntry {
  /** The version that has the entry. */
  readonly version: number
}

/** What `deny` has written of a list. */
export interface DenyListResult {
  /** The version that has all entries. */
  readonly version: number
  /** One for each entry given, in their order. */
  readonly entries: readonly DeniedEntry[]
}

/** What `removeRows` has written. */
export interface RemoveResult {
  /** The version that lacks the rows. */
  readonly version: number
  /** How many rows were removed. */
  readonly removed: number
}

/** A row of the list in Redis that cannot be read. */
export interface DamagedRow {
  /** The key that has it. */
  readonly key: 'version' | 'entries' | 'marks'
  /** Its name there: the field of the hash. */
  readonly name: string
  /** What it holds instead of a row. */
  readonly text: string
  /** Identifies key, name and text. */
  readonly digest: string
}

/** What `allow` has written. */
export interface AllowResult {
  /** The version that no longer has it. */
  readonly version: number
  /** Whether the list had the entry. */
  readonly wasListed: boolean
}

/** A receiver that reports which version it applies. */
export interface DenylistReceiver {
  /** Its `name`. */
  readonly name: string
  /** The version that it applies. */
  readonly version: number
  /** Seconds since it last said which version it applies. */
  readonly seenSecondsAgo: number
}

/** A version of the list, at a moment of its server. */
export interface DenylistVersion {
  /** Grows with each change. */
  readonly version: number
  /** Seconds since the epoch, by the server's clock. */
  readonly serverSeconds: number
}
