import { ServiceAuthError } from 'express-service-auth'
import { ActionError } from '../ports.js'

/** Runs what a visitor has asked for; what is wrong with it, or out of reach, is an `ActionError`. */
export async function explaining<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof TypeError || error instanceof ServiceAuthError) {
      throw new ActionError(error.message, { cause: error })
    }
    throw error
  }
}
