import { setTimeout as delay } from 'node:timers/promises'
import type { RunEnd, Undone } from '../../../base/decision/idempotency-event.js'
import type {
  HandlerEnding,
  RecordFinding,
  RunOutcome,
  RunRequest,
} from '../../../idempotency/run.js'
import {
  isEndedByHandler,
  type RecordIds,
  type RecordRow,
  type TokenValues,
} from '../sql/statements.js'
import {
  LOCK_NOT_AVAILABLE,
  READ_ONLY_SQL_TRANSACTION,
  SERIALIZATION_FAILURE,
  sqlStateOf,
  UNIQUE_VIOLATION,
} from '../sql-state.js'
import { query, type StoreContext } from '../store-context.js'
import type { LiveRun } from './live-runs.js'

/** How the runner's `transaction` settled. */
export type TransactionSettlement =
  | { readonly type: 'committed' }
  | { readonly type: 'failed'; readonly error: unknown }
  /** It has not settled in time. */
  | { readonly type: 'pending' }

/** What becomes of a handler's writes, and of its answer. */
export type TransactionEnding =
  /** Commits the writes with the answer. */
  | { readonly type: 'commit'; readonly result: Uint8Array | undefined }
  /** Rolls the writes back, unless the handler called `keepWrites`; stores the answer. */
  | { readonly type: 'refuse'; readonly result: Uint8Array | undefined }
  /** Rolls the writes back and stores nothing. */
  | { readonly type: 'roll_back'; readonly isReleased: boolean }

/** An ending whose answer can be committed with the handler's writes. */
export type RecordedEnding = Exclude<TransactionEnding, { readonly type: 'roll_back' }>

const TOO_MANY_REQUESTS = 429

/** Decides by the status alone, because frameworks turn thrown errors into answers. */
export function transactionEnding(ending: HandlerEnding): TransactionEnding {
  if (ending.type !== 'answered')
    return { type: 'roll_back', isReleased: ending.type === 'released' }
  const { status, result } = ending
  if (status < 400) return { type: 'commit', result }
  if (status < 500 && status !== TOO_MANY_REQUESTS) return { type: 'refuse', result }
  return { type: 'roll_back', isReleased: false }
}

/** A run whose transaction has settled, or is out of time. */
export interface EndedRun {
  readonly request: Pick<RunRequest, 'hasKey' | 'retentionMs'>
  readonly ids: RecordIds
  /** The token that the run uses up. */
  readonly token: TokenValues | undefined
  /** The handler's transaction, once the handler has begun. */
  readonly live: Pick<LiveRun<never>, 'usedTransaction'> | undefined
  /** The id of the transaction, once the handler has begun. */
  readonly fence: number | undefined
  /** When the handler had answered, by `performance.now`. */
  readonly answeredAt: number | undefined
}

const committed = ({ request, live }: EndedRun, ending: RecordedEnding): RunOutcome => ({
  ...answered(request.hasKey ? endOf(ending) : undefined),
  isTransactionUnused: ending.type === 'commit' && live?.usedTransaction !== true,
})

const endOf = ({ result }: RecordedEnding): RunEnd =>
  result === undefined ? 'result_too_large' : 'result_kept'

const answered = (end: RunEnd | undefined): RunOutcome & { readonly outcome: 'answered' } => ({
  outcome: 'answered',
  end,
})

/** What failed: the insert of the record before any COMMIT, or a step after which COMMIT may have been sent. */
type CommitStep = 'record' | 'commit'

/** An answer whose record, at least, was to be written. */
interface Committing {
  readonly step: CommitStep
  readonly ending: RecordedEnding
}

/** The outcome of a run whose record was written, or failed. */
export async function outcomeOfCommit<Tx>(
  store: StoreContext<Tx>,
  run: EndedRun,
  { step, ending, settlement }: Committing & { readonly settlement: TransactionSettlement },
): Promise<RunOutcome> {
  if (settlement.type === 'committed') {
    if (step === 'record') throw new TypeError(COMMITTED_TOO_EARLY)
    return committed(run, ending)
  }
  if (settlement.type === 'pending') return resolveUnansweredCommit(store, run, ending)
  const { error } = settlement
  if (isEndedByHandler(error)) return uncoupled(store, run, ending.result)
  return resolveFailedCommit(store, run, { step, ending, error })
}

const COMMITTED_TOO_EARLY =
  'TransactionRunner.transaction must resolve only when it has committed its work'

/** The outcome of a request that did nothing, because the database could not be queried. */
export function unavailable(settlement: TransactionSettlement): RunOutcome {
  if (settlement.type === 'committed') {
    throw new TypeError('TransactionRunner.transaction must run its work before it resolves')
  }
  const sqlState = settlement.type === 'failed' ? sqlStateOf(settlement.error) : undefined
  // With an older snapshot, the run could not see that another one has used its token.
  if (sqlState === SERIALIZATION_FAILURE) return { ...conflict, sqlState }
  return { ...undone('store_unavailable'), ...(sqlState !== undefined && { sqlState }) }
}

/** A handler's answer whose writes were rolled back. */
interface RolledBack {
  readonly ending: TransactionEnding
  /** The handler ended the transaction itself before that, so its writes may be committed. */
  readonly isUncoupled: boolean
  readonly settlement: TransactionSettlement
}

/** The handler's writes were rolled back. A separate statement still stores a refusal with a key. */
export async function outcomeOfRollback<Tx>(
  store: StoreContext<Tx>,
  run: EndedRun,
  { ending, isUncoupled, settlement }: RolledBack,
): Promise<RunOutcome> {
  if (settlement.type === 'committed') throw new TypeError(COMMITTED_TOO_EARLY)
  const isRefusal = ending.type !== 'roll_back'
  if (isUncoupled) return uncoupled(store, run, isRefusal ? ending.result : undefined)
  if (!isRefusal) return answered(ending.isReleased ? 'released' : 'rolled_back')
  if (!run.request.hasKey) return answered('rolled_back')
  return answered(await insertRecord(store, run, { result: ending.result, needsToken: true }))
}

/** The handler ended its transaction itself. Its record prevents a retry, which would repeat committed writes. */
async function uncoupled<Tx>(
  store: StoreContext<Tx>,
  run: EndedRun,
  result: Uint8Array | undefined,
): Promise<RunOutcome> {
  if (run.request.hasKey) await insertRecord(store, run, { result, needsToken: false })
  return answered('uncoupled')
}

interface SeparateRecord {
  readonly result: Uint8Array | undefined
  /** Whether it is written only if no other request has used the token of the run. */
  readonly needsToken: boolean
}

/** Writes the record, and the token of the run, outside its transaction. The first record of a key wins. */
async function insertRecord<Tx>(
  store: StoreContext<Tx>,
  { ids, request: { retentionMs }, token }: EndedRun,
  { result, needsToken }: SeparateRecord,
): Promise<'refusal_kept' | 'conflict' | 'result_lost'> {
  const { statements } = store
  const used = token && { ...token, isRequired: needsToken }
  const statement = statements.insertRecordSeparately(ids, { result, retentionMs }, used)
  try {
    return statements.readKept(await query(store, statement)) ? 'refusal_kept' : 'conflict'
  } catch (error) {
    return sqlStateOf(error) === UNIQUE_VIOLATION ? 'conflict' : 'result_lost'
  }
}

/** Returns the outcome of a transaction whose record or COMMIT failed. */
async function resolveFailedCommit<Tx>(
  store: StoreContext<Tx>,
  run: EndedRun,
  { step, ending, error }: Committing & { readonly error: unknown },
): Promise<RunOutcome> {
  const sqlState = sqlStateOf(error)
  const state = sqlState === undefined ? {} : { sqlState }
  switch (classifyFailure(step, sqlState)) {
    case 'duplicate':
      return (
        (await findOvertaker(store, run, ending)) ?? {
          outcome: 'commit_refused',
          cause: error,
          ...state,
        }
      )
    case 'retryable':
      return { ...conflict, ...state }
    case 'unavailable':
      return { ...undone('store_unavailable'), ...state }
    case 'refused':
      return { outcome: 'commit_refused', cause: error, ...state }
    case 'unclear':
      return { ...(await resolveUnansweredCommit(store, run, ending)), ...state }
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
  SERIALIZATION_FAILURE,
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
  run: EndedRun,
  ending: RecordedEnding,
): Promise<RunOutcome> {
  // Without a record nothing tells.
  if (!run.request.hasKey) return undone('commit_unknown')
  const status = await resolveCommit(store, run)
  switch (status.type) {
    case 'committed':
      return committed(run, ending)
    case 'overtaken':
      return overtaken(ending, status.by)
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
async function resolveCommit<Tx>(store: StoreContext<Tx>, run: EndedRun): Promise<CommitStatus> {
  const { acquireMs, resolveMs } = store.limits
  const until = performance.now() + resolveMs
  for (;;) {
    const leftMs = Math.floor(until - performance.now())
    if (leftMs <= 0) return { type: 'unknown' }
    const limits = { acquireMs: Math.min(acquireMs, leftMs), statementMs: leftMs }
    try {
      await query(store, store.statements.awaitRun(run.ids, { waitMs: leftMs }), limits)
      return await commitStatus(store, run)
    } catch (error) {
      if (sqlStateOf(error) === LOCK_NOT_AVAILABLE) return { type: 'unknown' }
      await delay(PAUSE_MS, undefined, { ref: false })
    }
  }
}

async function commitStatus<Tx>(
  store: StoreContext<Tx>,
  { ids, request, answeredAt = 0, fence }: EndedRun,
): Promise<CommitStatus> {
  const record = await findRecord(store, ids)
  if (record === undefined) {
    // A record that has expired says nothing.
    const isExpired = performance.now() >= answeredAt + request.retentionMs
    return { type: isExpired ? 'unknown' : 'not_committed' }
  }
  const isOwn = record.run === String(fence)
  return isOwn ? { type: 'committed' } : { type: 'overtaken', by: findingOf(record) }
}

async function findRecord<Tx>(
  store: StoreContext<Tx>,
  ids: RecordIds,
): Promise<RecordRow | undefined> {
  return store.statements.readRecord(await query(store, store.statements.findRecord(ids)))
}

/** Returns the outcome after a unique violation, or `undefined` if it was not in the table of records. */
async function findOvertaker<Tx>(
  store: StoreContext<Tx>,
  { ids }: EndedRun,
  ending: RecordedEnding,
): Promise<RunOutcome | undefined> {
  try {
    const record = await findRecord(store, ids)
    return record && overtaken(ending, findingOf(record))
  } catch {
    return undone('store_unavailable')
  }
}

/** A refusal is sent anyway: it is true that nothing was written. */
const overtaken = ({ type }: RecordedEnding, by: RecordFinding): RunOutcome =>
  type === 'refuse' ? answered('conflict') : { outcome: 'overtaken', by }

export const undone = (reason: Undone): RunOutcome & { readonly outcome: 'undone' } => ({
  outcome: 'undone',
  reason,
})

/** The transaction lost against another one: a retry may succeed at once. */
const conflict = { ...undone('conflict'), retryAfterSeconds: 0 }

export function findingOf({ isSame, result }: RecordRow): RecordFinding {
  if (!isSame) return { outcome: 'mismatch' }
  if (result === undefined) return { outcome: 'result_not_stored' }
  return { outcome: 'finished', result }
}
