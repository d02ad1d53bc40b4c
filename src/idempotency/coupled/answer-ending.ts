import type { CoupledEnding } from './coupled-store.js'

/** What a handler has answered with: a status, and the encoded result where it can be kept. */
export interface Answer {
  readonly status: number
  readonly result: Uint8Array | undefined
}

const TOO_MANY_REQUESTS = 429

/**
 * What becomes of the writes of a handler that has answered so. Frameworks make answers of thrown
 * errors, so that the status alone tells.
 */
export function endingOf({ status, result }: Answer): CoupledEnding {
  if (status < 400) return { type: 'commit', result }
  if (status < 500 && status !== TOO_MANY_REQUESTS) return { type: 'refuse', result }
  return { type: 'roll_back' }
}
