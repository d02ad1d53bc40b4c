import type { DenylistFailureCode } from '../../base/decision/store-event.js'
/** The tokens of one issuer that are denied now. */
export interface DeniedLists {
  /** Callers (`sub`). */
  readonly callers: ReadonlySet<string>
  /** Key ids. */
  readonly keys: ReadonlySet<string>
  /** Token ids (`jti`). */
  readonly tokenIds: ReadonlySet<string>
  /** Seconds since the epoch: tokens issued before, or without `iat`, are denied. */
  readonly issuedBefore?: number
}

/** The state of a live denylist. JSON-serialisable. */
export interface DenylistHealth {
  /** `stale`: in force, but not confirmed recently. `cold` (never read) and `expired`: unknown. */
  readonly state: 'cold' | 'fresh' | 'stale' | 'expired'
  /** How many entries are in force. */
  readonly entries: number
  /** The version in force; 0 before the first. */
  readonly version: number
  /** Seconds since the list was last confirmed. */
  readonly ageSeconds?: number
  /** The receiver retains entries that the list has lost (a failover, a flush). */
  readonly regressed?: true
  /** Why the last attempt to read it failed, until one succeeds. */
  readonly lastError?: DenylistFailureCode
}

/** A denylist that changes while receivers run, judged from memory for each request. */
export interface LiveDenylist {
  /**
   * Returns the tokens of this issuer that are denied now, from memory; `undefined` if that is not known
   * and the request gets the 503. Called for each request, after signature and claims.
   */
  lists(issuer: string): DeniedLists | undefined
  /**
   * Called before each decision, without an argument. Returns `undefined`, or a promise if the list may have changed
   * unnoticed, because the process was frozen. The decision waits until the promise settles; whatever it brings,
   * `lists` decides. So it must settle soon, and must not be returned while the server is merely unreachable.
   */
  catchUp?(): Promise<void> | undefined
  /** Resolves once the list is known; rejects when it cannot be read. */
  ready(): Promise<void>
  /** Its state, from memory. */
  health(): DenylistHealth
  /** Closes its connections. */
  close(): void
}
