import type { ConnectionFault } from '../../base/fetch.js'

/**
 * The reason why the core gave no answer: a closed list.
 *
 * - `api_key_unavailable`: the key function threw, returned no valid key or took too long. Nothing was
 *   sent, or only a request that the core refused because of its key.
 * - `timeout`: there was no complete answer in time.
 * - `unreachable`: there was no connection, or it was closed early.
 */
export type CoreFailureCode = 'api_key_unavailable' | 'timeout' | 'unreachable'

/**
 * The error if the core gave no answer. Never has a cause, because the error of a `fetch` can hold data
 * that was sent or received.
 */
export class CoreFailure extends Error {
  override readonly name = 'CoreFailure'
  readonly code: CoreFailureCode
  /** Whether the core may have carried out the request. */
  readonly mayHaveArrived: boolean
  /** Node's error code of the connection, such as `ECONNREFUSED`. */
  declare readonly systemCode?: string

  constructor(code: CoreFailureCode, fault?: ConnectionFault) {
    const { systemCode, isBeforeConnection = false } = fault ?? {}
    super(`the core gave no answer: ${systemCode === undefined ? code : `${code}, ${systemCode}`}`)
    this.code = code
    this.mayHaveArrived = code !== 'api_key_unavailable' && !isBeforeConnection
    if (systemCode !== undefined) this.systemCode = systemCode
  }
}
