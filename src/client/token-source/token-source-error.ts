import { afterFailure, type BackOff } from '../../base/back-off.js'

/**
 * Why there is no token: a closed list.
 *
 * - `core_unreachable`: no connection to the core, or it was cut.
 * - `core_timeout`: no complete answer of the core within `timeoutMs`, or only once the token had
 *   come to its end.
 * - `core_busy`: the core, or a proxy before it, answered 429 for as long as `timeoutMs` allows.
 * - `core_rejected`: the core answered with another status below 500 that is neither 200 nor 401.
 *   Redirects are among them: none is followed.
 * - `core_failed`: the core answered with a status of 500 or above.
 * - `api_key_refused`: the core answered 401; with a key function, to the key that it gave next, too.
 * - `api_key_unavailable`: the key function threw, took too long or gave no key.
 * - `algorithm_unsupported`: the core does not sign with RS256.
 * - `response_malformed`: a 200 that is no answer of the core: no JSON, more than 16 KiB, no token.
 * - `token_unexpected`: the token is not the one that was asked for.
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
 * What is known of a failure besides its code.
 *
 * @inline
 */
interface Details {
  /** The status of the core's answer, where there was one. */
  readonly coreStatus?: number
  /** The beginning of the core's text, without secrets. */
  readonly coreText?: string
  /** What Node says of the connection, such as `ECONNREFUSED`. */
  readonly systemCode?: string
  /** The claim or header parameter by which the token is not the one that was asked for. */
  readonly member?: string
}

/**
 * There is no token, and `code` says why. Holds neither a key nor a token, and for that reason no
 * `cause`: that of a `fetch` can hold what was sent or what came back.
 */
export class TokenSourceError extends Error {
  override readonly name = 'TokenSourceError'
  /** Why there is no token. */
  readonly code: TokenSourceErrorCode
  /** The status of the core's answer, where that is why. */
  declare readonly coreStatus?: number

  /** `tokenSource` makes these. */
  constructor(code: TokenSourceErrorCode, details: Details = {}) {
    const { coreStatus, coreText, systemCode, member } = details
    const known = [coreStatus && `status ${coreStatus}`, systemCode, member && `in ${member}`]
    const message = [`no service token: ${code}`, ...known.filter(Boolean)].join(', ')
    super(coreText === undefined ? message : `${message}: ${coreText}`)
    this.code = code
    if (coreStatus !== undefined) this.coreStatus = coreStatus
  }
}

const PASSING: ReadonlySet<TokenSourceErrorCode> = new Set([
  'core_unreachable',
  'core_timeout',
  'core_busy',
  'core_failed',
])

/** Whether the failure can end without anybody's help: a core that restarts, or that is overloaded. */
export const maySubside = (error: unknown): boolean =>
  error instanceof TokenSourceError && PASSING.has(error.code)

/** Calls that wait for a token while the core restarts must not wait for long after it. */
const LAST_STEP_OF_PASSING_MS = 5000

/** The back-off of a source after one more failure. */
export const afterTokenFailure = (
  earlier: BackOff | undefined,
  error: TokenSourceError,
  when: { readonly at: number; readonly jitter: number },
): BackOff => afterFailure(earlier, when, maySubside(error) ? LAST_STEP_OF_PASSING_MS : undefined)
