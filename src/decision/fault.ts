/** What went wrong on the receiver's own side. */
export type ServiceAuthErrorCode = 'wrong_wiring' | 'internal' | 'unavailable' | 'unfit'

/**
 * Every failure that is the receiver's own, never the caller's:
 *
 * - `wrong_wiring`: the middlewares are put together in a way that cannot work. Passed to
 *   `next(error)`.
 * - `internal`: code that the package was given (a store, a clock, a function) has failed; its error
 *   is the `cause`. Passed to `next(error)`.
 * - `unavailable`: the key set or the store is out of reach. `ready()` and `check()` reject with it;
 *   a request gets the 503.
 * - `unfit`: the store must not be used as it is configured. `check()` rejects with it.
 *
 * It has neither `status`, `statusCode` nor `headers`, with which Express would answer.
 */
export class ServiceAuthError extends Error {
  override readonly name = 'ServiceAuthError'
  readonly code: ServiceAuthErrorCode

  constructor(code: ServiceAuthErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

export const wrongWiring = (message: string): ServiceAuthError =>
  new ServiceAuthError('wrong_wiring', message)

/** Wraps whatever was thrown, so that nothing of it (a `status`, say) speaks to Express. */
export function faultOf(by: string, thrown: unknown): ServiceAuthError {
  if (thrown instanceof ServiceAuthError) return thrown
  return new ServiceAuthError('internal', `${by} could not decide`, { cause: thrown })
}
