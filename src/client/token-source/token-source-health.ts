import type { TokenSourceErrorCode } from './token-source-error.js'

/** The state of a token source, from memory. JSON-serialisable; holds neither key nor token. */
export interface TokenSourceHealth {
  /**
   * `cold`: no token has been obtained yet. `fresh`: calls get the held one. `stale`: they still do,
   * and a renewal is due. `expired`: it is given no more, and the next call asks for another.
   * `single_use`: none is held, every call asks for one. `closed`: calls are rejected.
   */
  readonly state: 'cold' | 'fresh' | 'stale' | 'expired' | 'single_use' | 'closed'
  /** Seconds since the held token was asked for. */
  readonly ageSeconds?: number
  /** Seconds for which the held token will still be given; 0 once it has expired. */
  readonly usableSeconds?: number
  /** Why the last request for a token failed, until one succeeds. */
  readonly lastError?: TokenSourceErrorCode
  /** Beside `lastError`: seconds until the core may be asked again; 0 when the next call may. */
  readonly retrySeconds?: number
}
