import { ignoreRejection } from '../base/decision/observers.js'
import { ServiceAuthError } from '../base/decision/service-auth-error.js'
import { Unavailable } from '../base/decision/unavailable.js'
import type { LiveDenylist } from '../verification/denylist/live-denylist.js'

/**
 * Calls the denylist before the first request, because it may begin to poll at its first call. The result of the call,
 * or its failure, is ignored.
 */
export function startPolling(denylist: LiveDenylist, issuer: string): void {
  try {
    ignoreRejection(denylist.lists(issuer))
  } catch {}
}

/** @throws ServiceAuthError `'unfit'` if the denylist rejects with it, otherwise `'unavailable'`. */
export async function denylistReady(denylist: LiveDenylist): Promise<void> {
  try {
    await denylist.ready()
  } catch (error) {
    const isServiceAuthError = error instanceof ServiceAuthError
    if (isServiceAuthError && (error.code === 'unavailable' || error.code === 'unfit')) throw error
    throw new Unavailable('denylist', 'a live denylist of the policy is not ready', {
      cause: error,
    })
  }
}
