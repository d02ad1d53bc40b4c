import type { Ending, Reservation, ReservationRequest, Run } from './idempotency-store.js'

/** The record of a key in a store. A `running` record whose lease has expired is abandoned. Times in ms. */
export type IdempotencyRecord = {
  readonly owner: string
  readonly fence: number
  readonly fingerprint: string
  /**
   * How long the record is stored after its lease: the time that the run has requested, plus the rest of a
   * tombstone that the run has replaced.
   */
  readonly retentionMs: number
  /** When the record may be deleted. */
  readonly expiresAt: number
} & (
  | { readonly state: 'running'; readonly leaseUntil: number }
  | { readonly state: 'not_stored' }
  | { readonly state: 'finished'; readonly result: Uint8Array }
  | {
      readonly state: 'freed'
      /** Why an operator has freed the key. */
      readonly reason?: string | undefined
    }
)

/** An answer, and the record to store. */
export interface Transition<Answer> {
  readonly answer: Answer
  readonly record: IdempotencyRecord | undefined
}

type OptionalRecord = IdempotencyRecord | undefined

/** An expired record counts as absent. */
export const liveRecord = (record: OptionalRecord, now: number): OptionalRecord =>
  record !== undefined && now < record.expiresAt ? record : undefined

const running = (run: Run, now: number, tombstoneMs: number): IdempotencyRecord => ({
  state: 'running',
  owner: run.owner,
  fence: run.fence,
  fingerprint: run.fingerprint,
  retentionMs: run.retentionMs + tombstoneMs,
  leaseUntil: now + run.leaseMs,
  expiresAt: now + run.leaseMs + run.retentionMs + tombstoneMs,
})

/** The rest of a freed key's tombstone, in the record of the run that reserved the key. */
const tombstoneMsIn = (
  record: OptionalRecord,
  { retentionMs }: Pick<Run, 'retentionMs'>,
): number => (record === undefined ? 0 : Math.max(0, record.retentionMs - retentionMs))

/** Reserves the key if it is free. `minFence` is above every fence of a deleted record. */
export function reserve(
  stored: OptionalRecord,
  { rerunAbandoned, ...request }: ReservationRequest,
  { now, minFence }: { now: number; minFence: number },
): Transition<Reservation> {
  const record = liveRecord(stored, now)
  const refuse = (answer: Reservation): Transition<Reservation> => ({ answer, record })
  const grant = (): Transition<Reservation> => {
    const fence = Math.max(minFence, (record?.fence ?? 0) + 1)
    const tombstoneMs =
      record?.state === 'freed' ? record.expiresAt - now : tombstoneMsIn(record, request)
    const reserved = running({ ...request, fence }, now, tombstoneMs)
    return { answer: { outcome: 'reserved', fence }, record: reserved }
  }
  if (record === undefined) return grant()
  const isOwn = record.owner === request.owner
  // This owner has already released the key, so its delayed reservation must not succeed.
  if (record.state === 'freed')
    return isOwn ? refuse({ outcome: 'running', leaseLeftMs: 0 }) : grant()
  if (record.fingerprint !== request.fingerprint) return refuse({ outcome: 'mismatch' })
  if (record.state === 'finished') return refuse({ outcome: 'finished', result: record.result })
  if (record.state === 'not_stored') return refuse({ outcome: 'result_not_stored' })
  // The reply to this owner's earlier attempt was lost, so it repeats its reservation.
  if (isOwn) return refuse({ outcome: 'reserved', fence: record.fence })
  const leaseLeftMs = record.leaseUntil - now
  if (leaseLeftMs > 0) return refuse({ outcome: 'running', leaseLeftMs })
  return rerunAbandoned ? grant() : refuse({ outcome: 'abandoned' })
}

const belongsTo = (record: IdempotencyRecord, run: Run): boolean =>
  record.owner === run.owner && record.fence === run.fence

/** Extends the lease of a run that still has the key. */
export function renew(stored: OptionalRecord, run: Run, now: number): Transition<boolean> {
  const record = liveRecord(stored, now)
  const isOwner = record === undefined || (record.state === 'running' && belongsTo(record, run))
  if (!isOwner) return { answer: false, record }
  return { answer: true, record: running(run, now, tombstoneMsIn(record, run)) }
}

/** Ends a run that still has the key. */
export function settle(
  stored: OptionalRecord,
  { run, ending }: { run: Run; ending: Ending },
  now: number,
): Transition<boolean> {
  const record = liveRecord(stored, now)
  const end = (): Transition<boolean> => {
    const tombstoneMs = tombstoneMsIn(record, run)
    return { answer: true, record: ended(run, ending, { now, tombstoneMs }) }
  }
  if (record === undefined) return end()
  if (!belongsTo(record, run)) return { answer: false, record }
  if (record.state === 'running') return end()
  // A repeated ending, whose first reply was lost, is confirmed; a different ending comes too late.
  const confirmedType = record.state === 'freed' ? 'released' : record.state
  return { answer: ending.type === confirmedType, record }
}

function ended(
  run: Run,
  ending: Ending,
  { now, tombstoneMs }: { now: number; tombstoneMs: number },
): IdempotencyRecord {
  const { owner, fence, fingerprint, leaseMs } = run
  const retentionMs = run.retentionMs + tombstoneMs
  const base = { owner, fence, fingerprint, retentionMs, expiresAt: now + retentionMs }
  switch (ending.type) {
    case 'finished':
      return { ...base, state: 'finished', result: ending.result }
    case 'not_stored':
      return { ...base, state: 'not_stored' }
    case 'abandoned':
      return { ...base, state: 'running', leaseUntil: now }
    case 'released':
      // A tombstone: a late call of this run, or of an earlier one, must not write the record again.
      return { ...base, state: 'freed', expiresAt: now + Math.max(leaseMs, tombstoneMs) }
  }
}
