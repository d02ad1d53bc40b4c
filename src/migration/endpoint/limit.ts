import { digestOfParts } from '../../base/digest.js'
import { retrySeconds } from './endpoint-result.js'

/**
 * A rate limiter with the interface of `rate-limiter-flexible`. A rejection with a number `msBeforeNext`
 * means that the limit is reached. Any other rejection means that the limiter failed.
 */
export interface MigrationLimiter {
  /** Consumes one point of the key, which is a digest of 24 characters. */
  consume(key: string): Promise<unknown>
}

/** Returns the seconds to wait; `undefined` within the limit. @throws the error of a failed limiter. */
export async function secondsToWait(
  limiter: MigrationLimiter,
  key: string,
): Promise<number | undefined> {
  try {
    await limiter.consume(key)
    return undefined
  } catch (error) {
    const milliseconds = (error as { msBeforeNext?: unknown } | null | undefined)?.msBeforeNext
    if (typeof milliseconds !== 'number') throw error
    return retrySeconds(milliseconds)
  }
}

const SCOPE = 'migrationEndpoint'

export const credentialKey = (issuer: string, token: string): string =>
  digestOfParts([SCOPE, 'credential', issuer, token])

export const userKey = (issuer: string, externalUserId: string): string =>
  digestOfParts([SCOPE, 'user', issuer, externalUserId])

/** Returns the name of the idempotency record. */
export const recordKey = (issuer: string, externalUserId: string): string =>
  digestOfParts([SCOPE, 'import', issuer, externalUserId])
