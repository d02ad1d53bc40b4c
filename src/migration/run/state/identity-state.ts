import type { IdentityState } from '../report.js'

/**
 * The state of an identity in a run, as one byte.
 *
 * - `retry`: is sent again, after a look-up of its row and its account.
 * - `sent`: its batch has no reply yet.
 * - `existing`: has an account or a row, no matter how it was created.
 * - `unresolved`: the run deletes its row, which the core may not have finished, and then looks it up.
 * - `to_import`: is imported directly, in a call of its own.
 */
export const IDENTITY_STATE = {
  pending: 0,
  invalid: 1,
  retry: 2,
  sent: 3,
  staged: 4,
  existing: 5,
  failed: 6,
  missing: 7,
  differs: 8,
  shared: 9,
  reconciled: 10,
  accepted: 11,
  left_out: 12,
  unresolved: 13,
  to_import: 14,
} as const

export type IdentityCode = (typeof IDENTITY_STATE)[keyof typeof IDENTITY_STATE]

/** The state in reports, by code. */
export const REPORTED_STATE: readonly IdentityState[] = [
  'pending',
  'invalid',
  'pending',
  'staged',
  'staged',
  'staged',
  'failed',
  'missing',
  'differs',
  'shared',
  'reconciled',
  'accepted',
  'left_out',
  'staged',
  'pending',
]

/** Why a valid record is not staged. */
export type LoginConflictCode = 'login_taken' | 'login_twice'

const FIRST_PACKAGE_NUMBER = 249

/** Codes of this package. The core's codes end at E046, so these numbers are unused. */
const PACKAGE_CODES: ReadonlyMap<string, number> = new Map([
  ['role_missing', FIRST_PACKAGE_NUMBER],
  ['tenant_missing', 250],
  ['feature_missing', 251],
  ['login_taken', 252],
  ['login_twice', 253],
  ['chunk_failed', 254],
  ['unknown_conflict', 255],
])

const CORE_CODE = /^E(\d{3})$/

/** Whether a record can fail or be held back with this code. */
export const isFailureCode = (code: unknown): code is string =>
  typeof code === 'string' && (PACKAGE_CODES.has(code) || CORE_CODE.test(code))

/** Returns 3 for `E003`, and 0 for an unknown code. */
export const numberOf = (code: string | undefined): number => {
  const packageNumber = PACKAGE_CODES.get(code ?? '')
  if (packageNumber !== undefined) return packageNumber
  const number = Number(CORE_CODE.exec(code ?? '')?.[1] ?? 0)
  return number < FIRST_PACKAGE_NUMBER ? number : 0
}
