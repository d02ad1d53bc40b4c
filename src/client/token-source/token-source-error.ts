import { afterFailure, type BackOff } from '../../base/back-off.js'

/**
 * The reason why there is no token: a closed list.
 *
 * - `core_unreachable`: there was no connection to the core, or it was closed early.
 * - `core_timeout`: the core gave no complete answer within `timeoutMs`, or its token was no longer
 *   usable on arrival.
 * - `core_busy`: the core, or a proxy in front of it, answered 429 for as long as `timeoutMs` allows.
 * - `core_rejected`: the core answered with another status below 500 that is neither 200 nor 401.
 *   This includes redirects, which are not followed.
 * - `core_failed`: the core answered with a status of 500 or above.
 * - `api_key_refused`: the core answered 401; if the key is a function, also to the next key.
 * - `api_key_unavailable`: the key function threw, took too long or returned no valid key.
 * - `algorithm_unsupported`: the core does not sign with RS256.
 * - `response_malformed`: the answer has status 200, but is not JSON, exceeds 16 KiB or holds no token.
 * - `token_unexpected`: the token differs from the requested one.
 * - `closed`: the source was closed.
 */
export type TokenSourceErrorCode =
  | 'core_unreachable'
  | 'core_timeout'
  | 'core_busy'
  | 'core_rejected'
  | 'core_failed'
  | 'api_key_refused'
  | 'api_key_unavailable'
  | 'algorithm_unsupported'
  | 'response_malformed'
  | 'token_unexpected'
  | 'closed'

/**
 * Details of a failure in addition to its code.
 *
 * @inline
 */
interface Details {
  /** The status of the core's answer, if there was one. */
  readonly coreStatus?: number
  /** The beginning of the core's response body, without secrets. */
  readonly coreText?: string
  /** Node's error code of the connection, such as `ECONNREFUSED`. */
  readonly systemCode?: string
  /** The claim or header parameter in which the token differs from the requested one. */
  readonly member?: string
}

/**
 * The error if there is no token. Holds neither a key nor a token, and therefore has no `cause`: the
 * error of a `fetch` can hold data that was sent or received.
 */
export class TokenSourceError extends Error {
  override readonly name = 'TokenSourceError'
  /** The reason why there is no token. */
  readonly code: TokenSourceErrorCode
  /** The status of the core's answer, if this status is the reason. */
  declare readonly coreStatus?: number

  /** Only `tokenSource` creates these errors. */
  constructor(code: TokenSourceErrorCode, details: Details = {}) {
    const { coreStatus, coreText, systemCode, member } = details
    const known = [coreStatus && `status ${coreStatus}`, systemCode, member && `in ${member}`]
    const message = [`no service token: ${code}`, ...known.filter(Boolean)].join(', ')
    super(coreText === undefined ? message : `${message}: ${coreText}`)
    this.code = code
    if (coreStatus !== undefined) this.coreStatus = coreStatus
  }
}

const TRANSIENT_CODES: ReadonlySet<TokenSourceErrorCode> = new Set([
  'core_unreachable',
  'core_timeout',
  'core_busy',
  'core_failed',
])

/** Whether the failure can pass without intervention, as when the core restarts or is overloaded. */
export const isTransient = (error: unknown): boolean =>
  error instanceof TokenSourceError && TRANSIENT_CODES.has(error.code)

/** The longest back-off after a transient failure, so that calls soon get a token after a core restart. */
const MAX_TRANSIENT_DELAY_MS = 5000

/** Returns the back-off of a source after a further failure. */
export const afterTokenFailure = (
  earlier: BackOff | undefined,
  error: TokenSourceError,
  when: { readonly at: number; readonly jitter: number },
): BackOff => afterFailure(earlier, when, isTransient(error) ? MAX_TRANSIENT_DELAY_MS : undefined)
