/**
 * Why an operation of the core failed. This list is closed.
 *
 * - `invalid_api_key`: a 401, or the key function failed.
 * - `forbidden`: a 403.
 * - `not_found`: a 404 of the core itself. If the count operation gets it, the core is older than 10.0.0.
 * - `in_memory_database`: the core has no persistent database, so it does not import.
 * - `bad_request`: any other 4xx, or a redirect.
 * - `too_large`: a 413, or a reply with more than 128 MiB.
 * - `busy`: the core, or a proxy in front of it, answered 429 until the time limit.
 * - `server_error`: a 5xx.
 * - `unreachable`: the connection failed or was closed early.
 * - `timeout`: no complete reply in time.
 * - `malformed_reply`: a reply that does not have the form of the operation, such as a 404 of a proxy.
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

/** `refused`: the operation had no effect. `unknown`: it may have taken effect. */
export type CoreErrorOutcome = 'refused' | 'unknown'

/** A failed operation of the core. It has no `cause`, which could contain data of the request or the reply. */
export class CoreError extends Error {
  override readonly name = 'CoreError'
  /** Why the operation failed. */
  readonly code: CoreErrorCode
  /** Whether the operation may have taken effect. */
  readonly outcome: CoreErrorOutcome
  /** The status of the core's reply, if there was one. */
  declare readonly status?: number

  /** Created by `coreClient`, and by custom clients. */
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
