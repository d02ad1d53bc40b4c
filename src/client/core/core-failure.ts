import type { ConnectionFault } from '../../base/connection-fault.js'

/**
 * Why the core gave no answer: a closed list.
 *
 * - `api_key_unavailable`: the key function threw, gave no key or took too long. Nothing was sent,
 *   or only a request that the core refused for its key.
 * - `timeout`: no complete answer in time.
 * - `unreachable`: no connection, or it was cut.
 */
export type CoreFailureCode = 'api_key_unavailable' | 'timeout' | 'unreachable'

/** The core gave no answer. Never has a cause: that of a `fetch` can hold what was sent or came back. */
export class CoreFailure extends Error {
  override readonly name = 'CoreFailure'
  readonly code: CoreFailureCode
  /** Whether the core may have done what it was asked. */
  readonly mayHaveArrived: boolean
  /** What Node says of the connection, such as `ECONNREFUSED`. */
  declare readonly systemCode?: string

  constructor(code: CoreFailureCode, fault?: ConnectionFault) {
    const { systemCode, isBeforeConnection = false } = fault ?? {}
    super(`the core gave no answer: ${systemCode === undefined ? code : `${code}, ${systemCode}`}`)
    this.code = code
    this.mayHaveArrived = code !== 'api_key_unavailable' && !isBeforeConnection
    if (systemCode !== undefined) this.systemCode = systemCode
  }
}
