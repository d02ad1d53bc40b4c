import type { MigrationCounts } from '../../../base/decision/migration-event.js'
import type { UserFinding } from '../../record-validation/user-finding.js'

type IdentityState = keyof MigrationCounts

/**
 * The state of an identity in a run.
 *
 * - `retry`: is sent again, after a look-up of its row and its account.
 * - `sent`: its batch has no reply yet.
 * - `existing`: has an account or a row, no matter how it was created.
 * - `unresolved`: the run deletes its row, which the core may not have finished, and then looks it up.
 * - `to_import`: is imported directly, in a call of its own.
 */
export const IDENTITY_STATE = {
  pending: 'pending',
  invalid: 'invalid',
  retry: 'retry',
  sent: 'sent',
  staged: 'staged',
  existing: 'existing',
  failed: 'failed',
  missing: 'missing',
  differs: 'differs',
  shared: 'shared',
  reconciled: 'reconciled',
  accepted: 'accepted',
  left_out: 'left_out',
  unresolved: 'unresolved',
  to_import: 'to_import',
} as const

export type IdentityCode = keyof typeof IDENTITY_STATE

const REPORTED_AS: Readonly<Record<Exclude<IdentityCode, IdentityState>, IdentityState>> = {
  retry: 'pending',
  sent: 'staged',
  existing: 'staged',
  unresolved: 'staged',
  to_import: 'pending',
}

/** Returns the state in reports. */
export const reportedState = (state: IdentityCode): IdentityState =>
  Object.hasOwn(REPORTED_AS, state)
    ? REPORTED_AS[state as keyof typeof REPORTED_AS]
    : (state as IdentityState)

/** What the journal says of an identity: why it is in its state, or the account that it has. */
export interface IdentityDetails {
  /** The core's id of the account. */
  readonly coreUserId?: string
  /** The core's id of the row that failed. */
  readonly rowId?: string
  /** A code of the core, such as `E003`, or of this package, such as `chunk_failed` or `login_taken`. */
  readonly code?: string
  /** Why it failed, in the words of the core. */
  readonly text?: string
  /** The core's id of another account that has a login of this identity. */
  readonly heldBy?: string
  /** Why the record is invalid. */
  readonly errors?: readonly UserFinding[]
  /** Paths of the record in which the account differs, without values. */
  readonly differences?: readonly string[]
  /** Why a person accepted it or left it out. */
  readonly reason?: string
}

/** One identity of the source. */
export interface Identity {
  state: IdentityCode
  /** 0 if its record is in the source, n if it is in the n-th corrections. */
  source: number
  /** It was in a call. Until then, a row of the identity is not from this run. */
  wasSent: boolean
  /** It was in a call without a reply, which may still take effect. */
  hadLostReply: boolean
  /** It is sent again, so that it is looked up before each call. */
  isRetry: boolean
  details: IdentityDetails
}

export const NO_DETAILS: IdentityDetails = {}

export const createIdentity = (): Identity => ({
  state: 'pending',
  source: 0,
  wasSent: false,
  hadLostReply: false,
  isRetry: false,
  details: NO_DETAILS,
})

/** Codes of this package. Any other code is of the core. */
const PACKAGE_CODES: ReadonlySet<string> = new Set([
  'role_missing',
  'tenant_missing',
  'feature_missing',
  'login_taken',
  'login_twice',
  'chunk_failed',
  'unknown_conflict',
])

/** Whether a record can fail or be held back with this code. */
export const isFailureCode = (code: unknown): code is string =>
  typeof code === 'string' && (PACKAGE_CODES.has(code) || /^E\d{3}$/.test(code))
