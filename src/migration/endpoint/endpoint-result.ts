import type {
  MigrationAcceptance,
  MigrationRefusal,
  MigrationUndecided,
} from '../../base/decision/migration-event.js'
import { ServiceAuthError } from '../../base/decision/service-auth-error.js'
import { CoreError } from '../core/core-error.js'
import type { UserFinding } from '../record-validation/user-finding.js'

export type EndpointResult =
  /** `userId` is the core's `user.id`. */
  | { readonly type: 'accepted'; readonly reason: MigrationAcceptance; readonly userId: string }
  | Refused
  | {
      readonly type: 'undecided'
      readonly reason: MigrationUndecided
      /** The code of the `CoreError`, if one is the cause. */
      readonly faults?: readonly string[]
    }

interface Refused {
  readonly ok: false
  readonly type: 'refused'
  readonly reason: MigrationRefusal
  /** For a 429. */
  readonly retryAfterSeconds?: number
  /** Paths and codes, never values. */
  readonly faults?: readonly string[]
}

export const refused = (
  reason: MigrationRefusal,
  more: Omit<Refused, 'ok' | 'type' | 'reason'> = {},
): Refused => ({ ok: false, type: 'refused', reason, ...more })

/** The value of a check, or the refusal that ends the request. */
export type CheckResult<T> = { readonly ok: true; readonly value: T } | Refused

export const pass = <T>(value: T): CheckResult<T> => ({ ok: true, value })

/** A dependency of the endpoint failed. It has no `cause`, which could contain data of the request. */
export class Undecided extends Error {
  override readonly name = 'Undecided'
  readonly result: EndpointResult

  /** `thrown` is the error of the dependency. If it is a `CoreError`, the result contains its code. */
  constructor(reason: MigrationUndecided, thrown?: unknown) {
    super(reason)
    this.result = undecided(reason, thrown)
  }
}

export const undecided = (reason: MigrationUndecided, thrown?: unknown): EndpointResult => ({
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

/** The largest `Retry-After`, so that clients need not parse longer numbers. */
const MAX_SECONDS = 31_536_000

/** Converts to whole seconds of at least 1, for `Retry-After`. */
export const retrySeconds = (milliseconds: number): number =>
  Math.min(MAX_SECONDS, Math.max(1, Math.ceil(milliseconds / 1000) || 1))

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
 * @throws Undecided if it fails. Rejects with the reason of the signal after the timeout.
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
    throw error instanceof ServiceAuthError && error.code === 'wrong_wiring'
      ? error
      : new Undecided(reason, error)
  }
  context.signal.throwIfAborted()
  return value
}
