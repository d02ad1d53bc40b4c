/** What went wrong on the receiver's own side. */
export type ServiceAuthErrorCode = 'wrong_wiring' | 'internal'

/**
 * What this package passes to `next(error)`: a mistake in how the middlewares are put together
 * (`wrong_wiring`), or an exception in code that it was given (`internal`, the first cause as
 * `cause`). It has neither `status`, `statusCode` nor `headers`, with which Express would answer.
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
