import type { MigrationCounts } from '../../base/decision/migration-event.js'
import type { RowStatus } from '../core/core-client.js'
import type { CoreErrorCode } from '../core/core-error.js'
import type { MigrationState, PreflightFinding, StepResult } from './state/journal-entry.js'
import {
  countsOf,
  detailsOf,
  type IdentityDetails,
  identityCode,
  type RunState,
  runStatus,
  sizeOf,
} from './state/run-state.js'

/** A row that still waited at the core when the run stalled. */
export interface RowLeft {
  /** The core's id of the row. */
  readonly id: string
  /** The external id of the row's user. */
  readonly externalUserId: string
  /** The status of the row at the core. */
  readonly status: RowStatus
  /** The core's id of another account that has a login of this user. The core never imports such a row. */
  readonly heldBy?: string
}

/** The result of a step of a migration. */
export interface MigrationReport {
  /** The state of the run. */
  readonly state: MigrationState
  /** Number of identities in each state. */
  readonly counts: MigrationCounts
  /** Number of records in the source. */
  readonly identities: number
  /** Time of the journal's first entry, in milliseconds since the epoch. */
  readonly startedAt: number
  /** Time of this report, in milliseconds since the epoch. */
  readonly reportedAt: number
  /** The rows of this run that still wait at the core. With the state `stalled`. */
  readonly rows?: readonly RowLeft[]
  /** The results of the preflight. */
  readonly findings: readonly PreflightFinding[]
  /** The next steps for a person, one sentence each. */
  readonly advice: readonly string[]
}

/** The state of one identity. This list is closed. */
export type IdentityState = keyof MigrationCounts

/** The report of one identity. */
export interface IdentityReport extends IdentityDetails {
  /** The external id of its record. */
  readonly externalUserId: string
  /** Line of the record in the source, or in the corrections that replaced it. */
  readonly line: number
  /** The name of the corrections that replaced the record. */
  readonly corrections?: string
  /** The state of the identity. */
  readonly state: IdentityState
}

export function createReport(state: RunState, { result, now }: ReportInput): MigrationReport {
  const status = result?.state ?? runStatus(state)
  const last = result ?? state.ended
  return {
    state: status,
    counts: countsOf(state),
    identities: sizeOf(state),
    startedAt: state.begun?.at ?? now,
    reportedAt: now,
    ...(status === 'stalled' && { rows: rowsLeft(state) }),
    findings: last?.findings ?? [],
    advice: adviceFor(state, status, last ?? {}),
  }
}

const rowsLeft = ({ stalledRows }: RunState): RowLeft[] =>
  [...stalledRows.values()].map(({ row, externalUserId, status, heldBy }) => ({
    id: row,
    externalUserId,
    status,
    ...(heldBy !== undefined && { heldBy }),
  }))

interface ReportInput {
  /** The result of the step that has just ended. Without it, the journal's last result is used. */
  readonly result?: StepResult
  readonly now: number
}

/** Codes with which a chunk fails regardless of its records: the core is at fault. */
const CORE_FAULT_CODES = ['E002', 'E004', 'E008', 'E018', 'E019', 'E033', 'E036', 'E037', 'E040']

/** Codes without a known reason: the record, the core or its database may be at fault. */
const UNEXPLAINED_CODES = ['chunk_failed', 'unknown_conflict']

const BY_STATE: Readonly<Partial<Record<MigrationState, string>>> = {
  preflight_failed: 'Fix the findings, then run again.',
  stalled:
    'The core makes no progress. If its import job is off, turn it on and run again; otherwise use unblock, then run again.',
  interrupted: 'Run to go on from here.',
  complete: 'Passwords cannot be read back: let some people sign in before you delete the source.',
}

/** `busy`: the core, or a proxy in front of it, limits the request rate. */
const BY_FAULT: Readonly<Record<CoreErrorCode, string>> = {
  invalid_api_key: 'Check the API key, then run again.',
  forbidden:
    'Check which addresses the core, or a proxy in front of it, accepts requests from, then run again.',
  not_found: 'Check the address of the core, including its path, then run again.',
  in_memory_database: 'Give the core a database, then run again.',
  bad_request:
    'Check that the address is that of a core, and that no proxy redirects or rewrites requests, then run again.',
  too_large:
    'Raise the limit of the proxy in front of the core, or lower batchBytes, then run again.',
  busy: 'Wait, or lower lookUps, then run again.',
  server_error: 'Read the logs of the core and its database, then run again.',
  unreachable: 'Check that the core is up and that its address is right, then run again.',
  timeout: 'Check the load of the core, or raise timeoutMs or stageTimeoutMs, then run again.',
  malformed_reply:
    'Check that a core answers at this address, and not a proxy or another service, then run again.',
}

function adviceFor(
  state: RunState,
  status: MigrationState,
  { fault, faultCode }: Partial<StepResult>,
): string[] {
  const counts = countsOf(state)
  const records = countByCode(state)
  const failedWith = (codes: readonly string[]): FailedRecords[] =>
    codes.flatMap((code) => records.get(`failed ${code}`) ?? [])
  const coreFaults = failedWith(CORE_FAULT_CODES)
  const unexplained = failedWith(UNEXPLAINED_CODES)
  const toRetry = [...coreFaults, ...unexplained].reduce((sum, { records }) => sum + records, 0)
  const toCorrect = counts.failed - toRetry
  const advice: (string | undefined)[] = [
    fault === undefined ? undefined : `The core: ${fault}`,
    BY_STATE[status],
    status === 'core_fault' && faultCode !== undefined ? BY_FAULT[faultCode] : undefined,
    state.blocked
      ? 'A deletion did not account for each row: find out what else deletes rows, then reconcile.'
      : undefined,
    status === 'complete' && state.hasUnverifiedCall
      ? 'A call without a reply may have taken effect since: reconcile once more.'
      : undefined,
    ...coreFaults.map(coreFaultAdvice),
    ...unexplained.map(unexplainedAdvice),
    counts.invalid > 0 ? 'Correct the invalid records, or leave them out.' : undefined,
    ...(state.started
      ? ['login_taken', 'login_twice'].map((code) => conflictAdvice(records.get(`invalid ${code}`)))
      : []),
    toCorrect > 0 ? 'Correct the records that failed, or leave them out.' : undefined,
    counts.missing > 0
      ? 'Some records have no account: correct them to stage them again, or leave them out.'
      : undefined,
    counts.differs > 0
      ? 'Some accounts differ from their records: correct the accounts and reconcile, or accept them.'
      : undefined,
    counts.shared > 0
      ? 'Some accounts belong to several records: separate them and reconcile, or accept them.'
      : undefined,
  ]
  return advice.filter((sentence) => sentence !== undefined)
}

interface FailedRecords {
  readonly code: string
  readonly records: number
}

/** Counts the records that failed or are held back, by their state and code. */
function countByCode(state: RunState): ReadonlyMap<string, FailedRecords> {
  const counts = new Map<string, FailedRecords>()
  for (let recordIndex = 0; recordIndex < sizeOf(state); recordIndex++) {
    const { code } = detailsOf(state, recordIndex)
    if (code === undefined) continue
    const key = `${identityCode(state, recordIndex)} ${code}`
    counts.set(key, { code, records: (counts.get(key)?.records ?? 0) + 1 })
  }
  return counts
}

const unexplainedAdvice = ({ code, records }: FailedRecords): string =>
  `${recordsInWords(records)} failed with ${code}: read the logs of the core, then correct the records, or fix the core and use correct --again ${code}.`

const coreFaultAdvice = ({ code, records }: FailedRecords): string =>
  `${recordsInWords(records)} failed with ${code}, which is a fault of the core: fix the core, then use correct --again ${code}.`

function conflictAdvice(held: FailedRecords | undefined): string | undefined {
  if (held === undefined) return undefined
  const { code, records } = held
  const beginning = `${recordsInWords(records)} ${records === 1 ? 'is' : 'are'} ${code}: `
  return code === 'login_taken'
    ? `${beginning}replace the login, or leave the record out; once the other account is removed, use correct --again login_taken.`
    : `${beginning}replace the login, or leave the record out. ${KEEP_LATER_RECORD}`
}

/** The earlier record may have its account already, and a record with an account cannot be left out. */
const KEEP_LATER_RECORD =
  'To keep this record instead of the other one, remove the account of the other one, reconcile, leave the other record out, then use correct --again login_twice.'

const recordsInWords = (records: number): string =>
  records === 1 ? '1 record' : `${records} records`
