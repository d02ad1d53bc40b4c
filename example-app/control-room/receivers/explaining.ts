import { ServiceAuthError } from 'express-service-auth'
import { ActionError, UnavailableError } from '../ports.js'

/**
 * Runs what a visitor has asked for.
 * @throws {ActionError} (as a rejection) when something is wrong with it; an `UnavailableError` when the
 * store or a process does not answer
 */
export async function explaining<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof TypeError) throw new ActionError(error.message, { cause: error })
    if (error instanceof ServiceAuthError) {
      throw new UnavailableError(error.message, { cause: error })
    }
    throw error
  }
}
