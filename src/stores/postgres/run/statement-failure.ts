/**
 * The statement that failed: the one that writes the record, or one after which the transaction may have committed.
 */
export type ClosingStage = 'record' | 'commit'

/**
 * The result of a transaction that failed at its end.
 *
 * - `overtaken`: a row with this id exists; it may be the key's record.
 * - `conflict`: the transaction lost against another one, and an immediate retry may succeed.
 * - `unclear`: it is not known whether it committed.
 * - `unavailable`: it did not commit, for a reason outside the transaction.
 * - `refused`: it did not commit, and a retry will not either.
 */
export type ClosingFailure = 'overtaken' | 'conflict' | 'unclear' | 'unavailable' | 'refused'

const UNIQUE_VIOLATION = '23505'
const CONFLICTS: ReadonlySet<string> = new Set([
  '40001', // serialization_failure
  '40P01', // deadlock_detected
  '55P03', // lock_not_available
])
const READ_ONLY = '25006' // read_only_sql_transaction
const UNAVAILABLE: ReadonlySet<string> = new Set([
  READ_ONLY,
  '25P03', // idle_in_transaction_session_timeout
  '25P04', // transaction_timeout
])
const INSUFFICIENT_RESOURCES = '53'
/** The classes for the connection, operators, the system and Postgres itself: they say nothing about a COMMIT. */
const OF_THE_SERVER: ReadonlySet<string> = new Set(['08', '57', '58', 'XX'])

/** Classifies a failure by the stage and the SQLSTATE (Postgres, "PostgreSQL Error Codes"), if there is one. */
export function failureAt(stage: ClosingStage, sqlState: string | undefined): ClosingFailure {
  const undecided = stage === 'commit' ? 'unclear' : 'unavailable'
  if (sqlState === undefined) return undecided
  if (sqlState === UNIQUE_VIOLATION) return 'overtaken'
  if (CONFLICTS.has(sqlState)) return 'conflict'
  const ofClass = sqlState.slice(0, 2)
  if (OF_THE_SERVER.has(ofClass)) return undecided
  if (ofClass === INSUFFICIENT_RESOURCES || UNAVAILABLE.has(sqlState)) return 'unavailable'
  return 'refused'
}

/**
 * Whether a handler's statement failed because of the server, so that a retry may succeed: the server
 * lacks a resource (class 53), is read-only, or ended the connection (57P01 to 57P05).
 */
export const isServerFailure = (sqlState: string | undefined): boolean =>
  sqlState !== undefined &&
  (sqlState.startsWith(INSUFFICIENT_RESOURCES) ||
    sqlState === READ_ONLY ||
    /^57P0[1-5]$/.test(sqlState))
