import { ServiceAuthError } from '../../base/decision/service-auth-error.js'
import type { MigrationUndecided } from './decision.js'
import { Undecided, type Verdict } from './endpoint-result.js'

/** The way of one request through the endpoint: what is known so far, and what is awaited. */
export interface Course {
  /** Aborts when the time is over. */
  signal: AbortSignal
  /** What it means when the time is over now. */
  awaited: MigrationUndecided
  issuer?: string
  externalUserId?: string
  /** Decided already; what is left to do is not worth a wait. */
  verdict?: Verdict
}

/**
 * Waits for what others do.
 *
 * @throws Undecided when it fails, and nothing goes on when the time is over meanwhile.
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
