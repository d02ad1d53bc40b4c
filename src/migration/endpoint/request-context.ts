import { ServiceAuthError } from '../../base/decision/service-auth-error.js'
import type { MigrationUndecided } from './decision.js'
import { Undecided, type Verdict } from './endpoint-result.js'

/** The state of one request: the values known so far, and the pending operation. */
export interface Course {
  /** Aborts at the timeout. */
  signal: AbortSignal
  /** The reason of the 503 if the timeout occurs now. */
  awaited: MigrationUndecided
  issuer?: string
  externalUserId?: string
  /** The result, once decided. The response does not wait for the remaining work. */
  verdict?: Verdict
}

/**
 * Awaits a dependency.
 *
 * @throws Undecided if it fails. Rejects with the reason of the signal after the timeout.
 */
export async function need<T>(
  course: Course,
  reason: MigrationUndecided,
  work: () => T | Promise<T>,
): Promise<T> {
  course.awaited = reason
  let value: T
  try {
    value = await work()
  } catch (error) {
    throw error instanceof ServiceAuthError && error.code === 'wrong_wiring'
      ? error
      : new Undecided(reason, error)
  }
  course.signal.throwIfAborted()
  return value
}
