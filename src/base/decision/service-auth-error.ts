/** The code of a `ServiceAuthError`. */
export type ServiceAuthErrorCode =
  | 'wrong_wiring'
  | 'internal'
  | 'unavailable'
  | 'unfit'
  | 'commit_refused'

/**
 * A failure on the receiver's side. By `code`:
 *
 * - `wrong_wiring`: the middlewares are in an order, or a request is of a kind, that cannot work.
 *   Passed to `next(error)`.
 * - `internal`: a store, a clock or another function that the package was given has failed; its
 *   error is the `cause`. Passed to `next(error)`.
 * - `unavailable`: the key set, a denylist or the store cannot be reached. `ready()` and `check()` reject
 *   with it; a request gets the 503.
 * - `unfit`: the store must not be used as it is configured, or a live denylist lacks a right. `check()`
 *   and `ready()` reject with it.
 * - `commit_refused`: the database has refused to commit what a handler had written; its error is the
 *   `cause`. Passed to `next(error)` instead of the handler's answer.
 *
 * It has no `status`, `statusCode` or `headers`, because Express would answer with them.
 */
export class ServiceAuthError extends Error {
  override readonly name = 'ServiceAuthError'
  /** The kind of error. */
  readonly code: ServiceAuthErrorCode

  /** The package makes these; a store of your own may, too. */
  constructor(code: ServiceAuthErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/**
 * The key set, a denylist or the store cannot be reached. Only `Unavailable` becomes a 503; everything else goes to
 * `next(error)`.
 */
export class Unavailable extends ServiceAuthError {
  readonly what: 'key_set' | 'denylist' | 'store'

  constructor(what: Unavailable['what'], message: string, options?: ErrorOptions) {
    super('unavailable', message, options)
    this.what = what
  }
}

export const wrongWiring = (message: string): ServiceAuthError =>
  new ServiceAuthError('wrong_wiring', message)

/** Wraps what other code has thrown: Express would answer with its `status` and `headers`. */
export function toServiceAuthError(by: string, thrown: unknown): ServiceAuthError {
  if (thrown instanceof ServiceAuthError) return thrown
  return new ServiceAuthError('internal', `${by} could not decide`, { cause: thrown })
}
