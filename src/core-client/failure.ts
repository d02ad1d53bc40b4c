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
  /** What Node says of the connection, such as `ECONNREFUSED`. */
  declare readonly systemCode?: string

  constructor(code: CoreFailureCode, systemCode?: string) {
    super(`the core gave no answer: ${systemCode === undefined ? code : `${code}, ${systemCode}`}`)
    this.code = code
    if (systemCode !== undefined) this.systemCode = systemCode
  }
}

/** Causes of causes; a chain that is longer is no chain of Node's. */
const MAX_CAUSES = 8
const SYSTEM_CODE = /^[A-Z][A-Z0-9_]{1,40}$/

/** The code of the innermost cause that has one in the form of Node's codes. */
export function systemCodeOf(thrown: unknown): string | undefined {
  let found: string | undefined
  let cause = thrown
  for (let depth = 0; depth < MAX_CAUSES && cause instanceof Error; depth += 1) {
    const { code } = cause as NodeJS.ErrnoException
    if (typeof code === 'string' && SYSTEM_CODE.test(code)) found = code
    cause = cause.cause
  }
  return found
}
