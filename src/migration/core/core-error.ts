/**
 * Why an operation of the core has not succeeded: a closed list.
 *
 * - `invalid_api_key`: a 401, or the key function failed.
 * - `forbidden`: a 403.
 * - `not_found`: the core's own 404; of the count operation, a core older than 10.0.0.
 * - `in_memory_database`: the core keeps nothing, so it imports nothing.
 * - `bad_request`: any other 4xx, redirects too.
 * - `too_large`: a 413.
 * - `busy`: the core, or a proxy before it, answered 429 for as long as the time limit allows.
 * - `server_error`: a 5xx.
 * - `unreachable`: no connection, or it was cut.
 * - `timeout`: no complete reply in time.
 * - `malformed_reply`: a reply that is not of the operation's form, such as a 404 of a proxy.
 */
export type CoreErrorCode =
  | 'invalid_api_key'
  | 'forbidden'
  | 'not_found'
  | 'in_memory_database'
  | 'bad_request'
  | 'too_large'
  | 'busy'
  | 'server_error'
  | 'unreachable'
  | 'timeout'
  | 'malformed_reply'

/** `refused`: nothing has happened. `unknown`: it may have happened. */
export type CoreErrorOutcome = 'refused' | 'unknown'

/** An operation of the core has not succeeded. Has no cause: it could hold what was sent or came back. */
export class CoreError extends Error {
  override readonly name = 'CoreError'
  /** Why it has not succeeded. */
  readonly code: CoreErrorCode
  /** Whether it may have happened. */
  readonly outcome: CoreErrorOutcome
  /** The status of the core's reply, where there was one. */
  declare readonly status?: number

  /** `coreClient` makes these, and clients of your own. */
  constructor(
    message: string,
    {
      code,
      outcome,
      status,
    }: {
      readonly code: CoreErrorCode
      readonly outcome: CoreErrorOutcome
      readonly status?: number
    },
  ) {
    super(message)
    this.code = code
    this.outcome = outcome
    if (status !== undefined) this.status = status
  }
}
