import { CoreError } from '../core/core-error.js'
import type { UserFinding } from '../record-validation/user-finding.js'
import type { MigrationAcceptance, MigrationRefusal, MigrationUndecided } from './decision.js'

/** What has become of a request. */
export type Verdict =
  /** `userId`: the core's `user.id`. */
  | { readonly type: 'accepted'; readonly reason: MigrationAcceptance; readonly userId: string }
  | Refused
  | {
      readonly type: 'undecided'
      readonly reason: MigrationUndecided
      /** The core's code. */
      readonly faults?: readonly string[]
    }

export interface Refused {
  readonly ok: false
  readonly type: 'refused'
  readonly reason: MigrationRefusal
  /** Of a 409 and a 429. */
  readonly retryAfterSeconds?: number
  /** Paths and codes, never values. */
  readonly faults?: readonly string[]
}

export const refused = (
  reason: MigrationRefusal,
  more: Omit<Refused, 'ok' | 'type' | 'reason'> = {},
): Refused => ({ ok: false, type: 'refused', reason, ...more })

/** What a check has found, or why the request ends here. */
export type Step<T> = { readonly ok: true; readonly value: T } | Refused

export const pass = <T>(value: T): Step<T> => ({ ok: true, value })

/** Something that the endpoint needs has failed. Has no cause: it could hold what was sent. */
export class Undecided extends Error {
  override readonly name = 'Undecided'
  readonly verdict: Verdict

  /** `thrown`: what has failed; of the core's errors the code is told. */
  constructor(reason: MigrationUndecided, thrown?: unknown) {
    super(reason)
    this.verdict = undecided(reason, thrown)
  }
}

export const undecided = (reason: MigrationUndecided, thrown?: unknown): Verdict => ({
  type: 'undecided',
  reason,
  ...(thrown instanceof CoreError && { faults: [thrown.code] }),
})

/** More of them tell an operator nothing. */
const MAX_FAULTS = 20

/** Where findings are, and what they are of: neither texts nor values. */
export const faultsOf = (findings: readonly Pick<UserFinding, 'field' | 'code'>[]): string[] =>
  findings
    .slice(0, MAX_FAULTS)
    .map(({ field, code }) => (field === '' ? code : `${field}: ${code}`))

/** The largest `Retry-After`: more digits than these no client has to read. */
const MAX_SECONDS = 31_536_000

/** Whole seconds of at least 1, as in `Retry-After`. */
export const retrySeconds = (milliseconds: number): number =>
  Math.min(MAX_SECONDS, Math.max(1, Math.ceil(milliseconds / 1000) || 1))
