import { keyIdOf, keyIdOfResult } from './encryption-key-id.js'
import type { IdempotencyRecord } from './record.js'
import type { RecordView, Resolution } from './record-view.js'

/** There is a record, but not one that this version can read. */
interface UnreadableRecord {
  readonly state: 'unreadable'
  /** The version of the record's format, if this version of the package does not know it. */
  readonly version?: string | undefined
  /** Above every fence that the unreadable record may have. */
  readonly minFence: number
  /** When the record may be forgotten; infinite when it never is. */
  readonly expiresAt: number
}

export type StoredRecord = IdempotencyRecord | UnreadableRecord

/** A record that has been resolved. */
export type ResolvedRecord = Extract<IdempotencyRecord, { readonly state: 'finished' | 'freed' }>

/** A record as it was found. Times in ms. */
export interface InspectedRecord {
  readonly record: StoredRecord
  /** Whether its result, if it has one, can be read. */
  readonly isResultReadable: boolean
  readonly now: number
}

/** The largest `maxRunSeconds`. */
export const MAX_RUN_MS = 86_400_000
/** The longest time after which an old run may still write. */
const MIN_TOMBSTONE_MS = MAX_RUN_MS
const MICROSECONDS_PER_SECOND = 1_000_000

/** The end of the lease of a handler that may be at work; 0 if none is. */
const leaseUntil = (record: StoredRecord): number =>
  record.state === 'running' ? record.leaseUntil : 0

const hasLease = ({ record, now }: InspectedRecord): boolean => leaseUntil(record) > now

function viewState(inspected: InspectedRecord): RecordView['state'] {
  const { record, isResultReadable } = inspected
  switch (record.state) {
    case 'running':
      return hasLease(inspected) ? 'running' : 'abandoned'
    case 'finished':
      return isResultReadable ? 'finished' : 'unreadable'
    default:
      return record.state
  }
}

const fenceOf = (record: StoredRecord): number => (record.state === 'unreadable' ? 0 : record.fence)

/** The view of a record for operators. */
export function viewOf(inspected: InspectedRecord): RecordView {
  const { record, now } = inspected
  const { expiresAt } = record
  const common = {
    state: viewState(inspected),
    ...(hasLease(inspected) && { leaseLeftMs: Math.ceil(leaseUntil(record) - now) }),
    ...(Number.isFinite(expiresAt) && { expiresInMs: Math.ceil(expiresAt - now) }),
  }
  if (record.state === 'unreadable') {
    const { version } = record
    return {
      fence: fenceOf(record),
      ...common,
      ...(version !== undefined && { recordVersion: version }),
    }
  }
  const { fence, fingerprint } = record
  const keyId = keyIdIn(record)
  return {
    fence,
    fingerprint,
    ...common,
    // A fence is the time of its reservation, unless the clock was behind an earlier fence.
    ...(fence > 0 && { begunAt: Math.floor(fence / MICROSECONDS_PER_SECOND) }),
    ...(record.state === 'finished' && { resultBytes: record.result.byteLength }),
    ...(keyId !== undefined && { keyId }),
    ...(record.state === 'freed' && record.reason !== undefined && { reason: record.reason }),
  }
}

const keyIdIn = (record: IdempotencyRecord): string | undefined =>
  (record.state === 'finished' ? keyIdOfResult(record.result) : undefined) ?? keyIdOf(record.owner)

/** How the record ends, and its new owner, which differs from the run's: the run no longer owns the record. */
interface Settlement {
  readonly fence: number
  readonly as: Resolution
  readonly owner: string
}

/** The record that a resolution leaves; `undefined` where nothing may change. */
export function resolve(
  inspected: InspectedRecord,
  settlement: Settlement,
): ResolvedRecord | undefined {
  const { record, now } = inspected
  const { as, owner } = settlement
  if (settlement.fence !== fenceOf(record) || !maySettle(inspected, as.type)) return undefined
  const { fence, fingerprint, retentionMs } =
    record.state === 'unreadable' ? unreadableFields(record) : record
  const base = { owner, fence, fingerprint, retentionMs }
  if (as.type === 'finished') {
    const expiresAt = now + Math.max(retentionMs, MIN_TOMBSTONE_MS)
    return { ...base, state: 'finished', result: as.result, expiresAt }
  }
  const leftMs = Number.isFinite(record.expiresAt) ? record.expiresAt - now : 0
  const expiresAt = now + Math.max(leftMs, MIN_TOMBSTONE_MS)
  return { ...base, state: 'freed', expiresAt, reason: as.reason }
}

function maySettle(inspected: InspectedRecord, as: Resolution['type']): boolean {
  const { record } = inspected
  if (record.state === 'unreadable') return as === 'freed' && record.version === undefined
  const state = viewState(inspected)
  if (state === 'abandoned') return as !== 'forgotten'
  const isWithoutResult = state === 'unreadable' || state === 'not_stored'
  if (as === 'forgotten') return isWithoutResult || state === 'finished'
  return as === 'finished' && isWithoutResult
}

const unreadableFields = ({ minFence }: UnreadableRecord) => ({
  fence: minFence,
  fingerprint: '',
  retentionMs: MIN_TOMBSTONE_MS,
})
