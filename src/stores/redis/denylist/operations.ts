import { ServiceAuthError } from '../../../base/decision/service-auth-error.js'
import type {
  DenylistEntry,
  DenylistTarget,
} from '../../../verification/denylist/denylist-entry.js'

/** The operations on a live denylist. */
export interface DenylistOperations {
  /**
   * Adds an entry. If the target is denied already, the later end and the later cut-off apply. The earlier
   * entry keeps its reason, author and time unless the new one extends it. Resolves with the version that
   * has the entry, and with the resulting entry.
   *
   * @throws TypeError if the entry is not valid, has ended, or would be the 10,001st; nothing was written.
   * @throws DenylistUnconfirmed, also if the list has damaged rows; in that case nothing was written.
   */
  deny(entry: DenylistEntry, options?: DenylistCallOptions): Promise<DenyResult>
  /**
   * Adds 1 to 1000 entries, all or none. Resolves with the resulting entries, in the order of `entries`.
   *
   * @throws TypeError as for one entry; the message holds the index.
   * @throws DenylistUnconfirmed
   */
  deny(entries: readonly DenylistEntry[], options?: DenylistCallOptions): Promise<DenyListResult>
  /**
   * Removes an entry from the list and from every receiver that still applies it. Resolves with the
   * version without the entry, and whether the list had it.
   *
   * @throws TypeError if the target is not valid, or if 10,000 others were allowed within the last 7
   * days; nothing was written.
   * @throws DenylistUnconfirmed, also if the list has damaged rows; in that case nothing was written.
   */
  allow(target: DenylistTarget, options?: DenylistCallOptions): Promise<AllowResult>
  /** Returns the entries in force. @throws ServiceAuthError `unavailable` */
  entries(options?: DenylistCallOptions): Promise<readonly DenylistEntry[]>
  /**
   * Returns the receivers of the list. One that has crashed stays listed until it has been silent for its
   * `maxStaleSeconds`.
   *
   * @throws ServiceAuthError `unavailable`
   */
  receivers(options?: DenylistCallOptions): Promise<readonly DenylistReceiver[]>
  /** Returns the list's version and its server's time. @throws ServiceAuthError `unavailable` */
  version(options?: DenylistCallOptions): Promise<DenylistVersion>
  /** Reads the whole list; returns the unreadable rows. @throws ServiceAuthError `unavailable` */
  damagedRows(options?: DenylistCallOptions): Promise<readonly DamagedRow[]>
  /**
   * Removes these rows, unless they have changed since they were read.
   *
   * @throws DenylistUnconfirmed
   */
  removeRows(rows: readonly DamagedRow[], options?: DenylistCallOptions): Promise<RemoveResult>
}

/** Options of a denylist operation. */
export interface DenylistCallOptions {
  /** Milliseconds for the operation and its retries, 1 to 60,000. Default: 1000. */
  readonly timeoutMs?: number | undefined
}

/** The result of `deny` for one entry. */
export interface DeniedEntry {
  /** The entry in force, with its reason, author and time. */
  readonly entry: DenylistEntry
  /** Whether an earlier entry stays in force, because its end and its cut-off are as late or later. */
  readonly isEarlier: boolean
}

/** The result of `deny`. */
export interface DenyResult extends DeniedEntry {
  /** The version that has the entry. */
  readonly version: number
}

/** The result of `deny` for a list. */
export interface DenyListResult {
  /** The version that has all entries. */
  readonly version: number
  /** One for each entry of the call, in the same order. */
  readonly entries: readonly DeniedEntry[]
}

/** The result of `removeRows`. */
export interface RemoveResult {
  /** The version without the rows. */
  readonly version: number
  /** The number of removed rows. */
  readonly removed: number
}

/** A row of the list in Redis that cannot be read. */
export interface DamagedRow {
  /** The key that holds the row. */
  readonly key: 'version' | 'entries' | 'marks'
  /** The field of the hash. */
  readonly name: string
  /** The content of the row. */
  readonly text: string
  /** A digest of key, name and text. */
  readonly digest: string
}

/** The result of `allow`. */
export interface AllowResult {
  /** The version without the entry. */
  readonly version: number
  /** Whether the list had the entry. */
  readonly wasListed: boolean
}

/** A receiver that reports which version it applies. */
export interface DenylistReceiver {
  /** The `name` option of the receiver. */
  readonly name: string
  /** The version that the receiver applies. */
  readonly version: number
  /** Seconds since its last report. */
  readonly seenSecondsAgo: number
}

/** The version of the list at a time of its server. */
export interface DenylistVersion {
  /** Grows with each change. */
  readonly version: number
  /** Seconds since the epoch, by the server's clock. */
  readonly serverSeconds: number
}

/** A write to a denylist that was not confirmed. Its `code` is `unavailable`. */
export class DenylistUnconfirmed extends ServiceAuthError {
  /** Whether it may have been written anyway. */
  readonly mayBeWritten: boolean

  /** Only `deny`, `allow` and `removeRows` create these errors. */
  constructor(fault: string, mayBeWritten: boolean) {
    const outcome = mayBeWritten ? 'not known whether it was written' : 'nothing was written'
    super('unavailable', `the denylist is unreachable, ${outcome}: ${fault}`)
    this.mayBeWritten = mayBeWritten
  }
}
