import { digestOfParts } from '../../base/digest.js'
import { retrySeconds } from './endpoint-result.js'

/**
 * Limits how often something may happen, as the limiters of `rate-limiter-flexible` do. A rejection
 * with a number `msBeforeNext` says that it has happened too often; any other that nobody can tell.
 */
export interface MigrationLimiter {
  /** Counts once for the key, a digest of 24 characters. */
  consume(key: string): Promise<unknown>
}

/** Seconds to wait; `undefined` within the limit. @throws whatever has failed. */
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

/** The name of the idempotency key's record. */
export const recordKey = (issuer: string, externalUserId: string): string =>
  digestOfParts([SCOPE, 'import', issuer, externalUserId])
