import type { IdentityState } from '../report.js'

/**
 * What a run knows of an identity, as one byte. `again` is to be sent again, after a look for what is
 * there; `sent` waits for the reply of its batch; of `found` an account or a row was seen, whoever has
 * made it. The run deletes the row of an `unresolved` identity before the core is done with it, and then
 * looks the identity up. One that is `to_import` is imported directly, in a call of its own.
 */
export const IDENTITY = {
  pending: 0,
  invalid: 1,
  again: 2,
  sent: 3,
  staged: 4,
  found: 5,
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

export type IdentityCode = (typeof IDENTITY)[keyof typeof IDENTITY]

/** As what each code counts in a report. */
export const COUNTED_AS: readonly IdentityState[] = [
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
