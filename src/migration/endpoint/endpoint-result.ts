import type {
  MigrationAcceptance,
  MigrationRefusal,
  MigrationUndecided,
} from '../../base/decision/migration-event.js'
import { ServiceAuthError } from '../../base/decision/service-auth-error.js'
import { CoreError } from '../core/core-error.js'
import type { UserFinding } from '../record-validation/user-finding.js'

/** How a request ends. */
export type EndpointResult = Accepted | Refused | Undecided

interface Accepted {
  readonly type: 'accepted'
  readonly reason: MigrationAcceptance
  /** The core's `user.id`. */
  readonly userId: string
}

interface Refused {
  readonly type: 'refused'
  readonly reason: MigrationRefusal
  /** For a 429. */
  readonly retryAfterSeconds?: number
  /** Paths and codes, never values. */
  readonly faults?: readonly string[]
}

/** A dependency of the endpoint failed. */
interface Undecided {
  readonly type: 'undecided'
  readonly reason: MigrationUndecided
  /** The code of the `CoreError`, if one is the cause. */
  readonly faults?: readonly string[]
}

/** Thrown to end a request without an account. It has no `cause`, which could contain data of the request. */
export class RequestEnded extends Error {
  override readonly name = 'RequestEnded'
  readonly result: Refused | Undecided

  constructor(result: Refused | Undecided) {
    super(result.reason)
    this.result = result
  }
}

export const refused = (
  reason: MigrationRefusal,
  more: Pick<Refused, 'faults' | 'retryAfterSeconds'> = {},
): RequestEnded => new RequestEnded({ type: 'refused', reason, ...more })

/** `thrown` is the error of the dependency. If it is a `CoreError`, the result contains its code. */
export const undecided = (reason: MigrationUndecided, thrown?: unknown): RequestEnded =>
  new RequestEnded({
    type: 'undecided',
    reason,
    ...(thrown instanceof CoreError && { faults: [thrown.code] }),
  })

/** Maximum number of faults in a result. */
const MAX_FAULTS = 20

/** Returns the paths and codes of findings, without messages or values. */
export const faultsOf = (findings: readonly Pick<UserFinding, 'field' | 'code'>[]): string[] =>
  findings
    .slice(0, MAX_FAULTS)
    .map(({ field, code }) => (field === '' ? code : `${field}: ${code}`))

/** The state of one request: the values known so far, and the pending operation. */
export interface RequestContext {
  /** Aborts at the timeout. */
  signal: AbortSignal
  /** The reason of the 503 if the timeout occurs now. */
  awaited: MigrationUndecided
  issuer?: string
  externalUserId?: string
}

/**
 * Awaits a dependency.
 *
 * @throws RequestEnded if it fails. Rejects with the reason of the signal after the timeout.
 */
export async function need<T>(
  context: RequestContext,
  reason: MigrationUndecided,
  work: () => T | Promise<T>,
): Promise<T> {
  context.awaited = reason
  let value: T
  try {
    value = await work()
  } catch (error) {
    const isJudged = error instanceof RequestEnded || isWrongWiring(error)
    throw isJudged ? error : undecided(reason, error)
  }
  context.signal.throwIfAborted()
  return value
}

const isWrongWiring = (error: unknown): boolean =>
  error instanceof ServiceAuthError && error.code === 'wrong_wiring'
