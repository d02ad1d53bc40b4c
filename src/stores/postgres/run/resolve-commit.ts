import { setTimeout as delay } from 'node:timers/promises'
import type { Undone } from '../../../base/decision/idempotency-event.js'
import type { CoupledOutcome, RecordFinding } from '../../../idempotency/coupled/coupled-store.js'
import type { RecordIds } from '../sql/record-ids.js'
import type { RecordRow } from '../sql/record-statements.js'
import {
  LOCK_NOT_AVAILABLE,
  READ_ONLY_SQL_TRANSACTION,
  sqlStateOf,
  UNIQUE_VIOLATION,
} from '../sql-state.js'
import { query, type StoreContext } from '../store-context.js'
import { findingOf, type RecordedEnding } from './run-stage.js'

/** A transaction whose record or COMMIT failed, or got no reply. */
interface AttemptedCommit {
  readonly ids: RecordIds
  /** Whether it writes a record, by which its outcome can be found. */
  readonly isRecorded: boolean
  /** Until then, by `performance.now`, its record does not expire. */
  readonly expiresAt: number
  readonly ending: RecordedEnding
  /** The transaction's id. */
  readonly fence: number
  readonly usedTransaction: boolean
}

/** What failed: the insert of the record before any COMMIT, or a step after which COMMIT may have been sent. */
type CommitStep = 'record' | 'commit'

/** Returns the outcome of a transaction whose record or COMMIT failed. */
export async function resolveFailedCommit<Tx>(
  store: StoreContext<Tx>,
  commit: AttemptedCommit,
  { step, error }: { readonly step: CommitStep; readonly error: unknown },
): Promise<CoupledOutcome> {
  const sqlState = sqlStateOf(error)
  const state = sqlState === undefined ? {} : { sqlState }
  switch (classifyFailure(step, sqlState)) {
    case 'duplicate':
      return overtakenOr(store, commit, { outcome: 'commit_refused', cause: error, ...state })
    case 'retryable':
      return { ...undone('conflict'), mayRetryNow: true, ...state }
    case 'unavailable':
      return { ...undone('store_unavailable'), ...state }
    case 'refused':
      return { outcome: 'commit_refused', cause: error, ...state }
    case 'unclear':
      return { ...(await resolveUnansweredCommit(store, commit)), ...state }
  }
}

/**
 * The result of a transaction that failed at its end.
 *
 * - `duplicate`: a row with this id exists; it may be the key's record.
 * - `retryable`: the transaction lost against another one, and an immediate retry may succeed.
 * - `unclear`: it is not known whether it committed.
 * - `unavailable`: it did not commit, for a reason outside the transaction.
 * - `refused`: it did not commit, and a retry will not either.
 */
export type CommitFailure = 'duplicate' | 'retryable' | 'unclear' | 'unavailable' | 'refused'

const CONFLICTS: ReadonlySet<string> = new Set([
  '40001', // serialization_failure
  '40P01', // deadlock_detected
  LOCK_NOT_AVAILABLE,
])
const UNAVAILABLE: ReadonlySet<string> = new Set([
  READ_ONLY_SQL_TRANSACTION,
  '25P03', // idle_in_transaction_session_timeout
  '25P04', // transaction_timeout
])
const INSUFFICIENT_RESOURCES = '53'
/** Errors of the connection, an operator, the system or Postgres itself: they do not tell whether it committed. */
const SERVER_ERROR_CLASSES: ReadonlySet<string> = new Set(['08', '57', '58', 'XX'])

/** Classifies a failure by the step and the SQLSTATE (Postgres, "PostgreSQL Error Codes"), if there is one. */
export function classifyFailure(step: CommitStep, sqlState: string | undefined): CommitFailure {
  const withoutReply = step === 'commit' ? 'unclear' : 'unavailable'
  if (sqlState === undefined) return withoutReply
  if (sqlState === UNIQUE_VIOLATION) return 'duplicate'
  if (CONFLICTS.has(sqlState)) return 'retryable'
  const errorClass = sqlState.slice(0, 2)
  if (SERVER_ERROR_CLASSES.has(errorClass)) return withoutReply
  if (errorClass === INSUFFICIENT_RESOURCES || UNAVAILABLE.has(sqlState)) return 'unavailable'
  return 'refused'
}

/** Returns the outcome of a transaction whose COMMIT got no reply. */
export async function resolveUnansweredCommit<Tx>(
  store: StoreContext<Tx>,
  commit: AttemptedCommit,
): Promise<CoupledOutcome> {
  if (!commit.isRecorded) return undone('commit_unknown')
  const status = await resolveCommit(store, commit)
  switch (status.type) {
    case 'committed':
      return { outcome: 'committed', usedTransaction: commit.usedTransaction }
    case 'overtaken':
      return overtaken(commit, status.by)
    case 'not_committed':
      return undone('store_unavailable')
    case 'unknown':
      return undone('commit_unknown')
  }
}

/** The effect of a COMMIT, by the record that exists now. */
type CommitStatus =
  | { readonly type: 'committed' | 'not_committed' | 'unknown' }
  /** Another run's record exists. */
  | { readonly type: 'overtaken'; readonly by: RecordFinding }

const PAUSE_MS = 50

/**
 * Finds out whether a COMMIT without a reply took effect: waits for the run's lock, then looks for the record.
 * These are two statements, because the snapshot of a single one would be older than the lock.
 */
async function resolveCommit<Tx>(
  store: StoreContext<Tx>,
  commit: AttemptedCommit,
): Promise<CommitStatus> {
  const { acquireMs, resolveMs } = store.limits
  const until = performance.now() + resolveMs
  for (;;) {
    const leftMs = Math.floor(until - performance.now())
    if (leftMs <= 0) return { type: 'unknown' }
    const limits = { acquireMs: Math.min(acquireMs, leftMs), statementMs: leftMs }
    try {
      await query(store, store.statements.awaitRun(commit.ids, { waitMs: leftMs }), limits)
      return await commitStatus(store, commit)
    } catch (error) {
      if (sqlStateOf(error) === LOCK_NOT_AVAILABLE) return { type: 'unknown' }
      await delay(PAUSE_MS, undefined, { ref: false })
    }
  }
}

async function commitStatus<Tx>(
  store: StoreContext<Tx>,
  { ids, expiresAt, ending, fence }: AttemptedCommit,
): Promise<CommitStatus> {
  const record = await findRecord(store, ids)
  // A record that has expired says nothing.
  if (record === undefined)
    return { type: performance.now() < expiresAt ? 'not_committed' : 'unknown' }
  const isEqual = record.isSame && isSameResult(record.result, ending.result)
  // An equal record may still be another run's, with an equal result or also without one.
  const isOwn = isEqual && !(await isRolledBack(store, fence))
  return isOwn ? { type: 'committed' } : { type: 'overtaken', by: findingOf(record) }
}

const isSameResult = (one: Uint8Array | undefined, other: Uint8Array | undefined): boolean =>
  one === undefined || other === undefined ? one === other : Buffer.compare(one, other) === 0

/** Postgres's error for the id of a transaction that it has not begun yet. */
const INVALID_PARAMETER_VALUE = '22023'

/** `false` also means that the server does not know the transaction, as after a failover. */
async function isRolledBack<Tx>(store: StoreContext<Tx>, fence: number): Promise<boolean> {
  const { statements } = store
  try {
    const rows = await query(store, statements.transactionStatus(String(fence)))
    return statements.readTransactionStatus(rows) === 'aborted'
  } catch (error) {
    if (sqlStateOf(error) === INVALID_PARAMETER_VALUE) return false
    throw error
  }
}

async function findRecord<Tx>(
  store: StoreContext<Tx>,
  ids: RecordIds,
): Promise<RecordRow | undefined> {
  return store.statements.readRecord(await query(store, store.statements.findRecord(ids)))
}

/** Returns the outcome after a unique violation: `otherwise` if it was not in the table of records. */
async function overtakenOr<Tx>(
  store: StoreContext<Tx>,
  commit: AttemptedCommit,
  otherwise: CoupledOutcome,
): Promise<CoupledOutcome> {
  try {
    const record = await findRecord(store, commit.ids)
    return record === undefined ? otherwise : overtaken(commit, findingOf(record))
  } catch {
    return undone('store_unavailable')
  }
}

/** A refusal is sent anyway: it is true that nothing was written. */
const overtaken = ({ ending }: AttemptedCommit, by: RecordFinding): CoupledOutcome =>
  ending.type === 'refuse'
    ? { outcome: 'refusal_lost', to: 'overtaken' }
    : { outcome: 'overtaken', by }

const undone = (reason: Undone): CoupledOutcome & { readonly outcome: 'undone' } => ({
  outcome: 'undone',
  reason,
  mayRetryNow: false,
})
