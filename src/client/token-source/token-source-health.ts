import type { TokenSourceErrorCode } from './token-source-error.js'

/** The state of a token source, from memory. JSON-serialisable; holds neither key nor token. */
export interface TokenSourceHealth {
  /**
   * `cold`: no token has been obtained yet. `fresh`: calls get the current token. `stale`: they still
   * do, and a renewal is due. `expired`: they no longer do, and the next call requests another.
   * `single_use`: no token is stored, every call requests one. `closed`: calls are rejected.
   */
  readonly state: 'cold' | 'fresh' | 'stale' | 'expired' | 'single_use' | 'closed'
  /** Seconds since the current token was requested. */
  readonly ageSeconds?: number
  /** Seconds for which calls still get the current token; 0 once it has expired. */
  readonly usableSeconds?: number
  /** Why the last token request failed; absent once one has succeeded. */
  readonly lastError?: TokenSourceErrorCode
  /** Present with `lastError`: seconds of back-off left; 0 if the next call may send a request. */
  readonly retrySeconds?: number
}
