import { randomUUID } from 'node:crypto'
import { isObject, isShortText, MAX_TEXT_LENGTH } from '../../base/options.js'
import { decodeResult } from '../buffered-response/stored-result.js'
import type { IdempotencyRecord } from './record.js'

/** A record as an operator sees it. */
export interface RecordView {
  /** 0 where the whole record cannot be read. */
  readonly fence: number
  /** The digest of what must be identical in a retry. */
  readonly fingerprint?: string
  /**
   * `unreadable`: the whole record with a fence of 0, otherwise its result. `freed`: nothing has
   * happened, the key is free.
   */
  readonly state: 'running' | 'abandoned' | 'finished' | 'not_stored' | 'freed' | 'unreadable'
  /** Seconds since the epoch. */
  readonly begunAt?: number
  /** Milliseconds. */
  readonly leaseLeftMs?: number
  /** Milliseconds until the record is forgotten; absent when it never is. */
  readonly expiresInMs?: number
  /** Bytes. */
  readonly resultBytes?: number
  /** The id of the key by which the result is, or would be, encrypted. */
  readonly keyId?: string
  /** Why an operator has freed or forgotten the record. */
  readonly reason?: string
  /** The version of a record that this version of the package cannot read. */
  readonly recordVersion?: string
}

/**
 * Whether a stored result can be read. It gets the record's fingerprint, and must not reject for a result
 * that cannot be read.
 */
export type CanRead = (result: Uint8Array, fingerprint: string) => boolean | Promise<boolean>

/** How an operator settles a record whose outcome is unknown. */
export type Resolution =
  /** Nothing has happened: the next retry runs. */
  | {
      readonly type: 'freed'
      /** 1 to 256 characters, stored with the record. */
      readonly reason?: string | undefined
    }
  /** It has happened, and must happen again: the next request runs. */
  | {
      readonly type: 'forgotten'
      /** 1 to 256 characters, stored with the record. */
      readonly reason?: string | undefined
    }
  /** It has happened: retries get this answer, encoded as in `settle`. */
  | {
      readonly type: 'finished'
      readonly result: Uint8Array
      /** As in `inspect`. */
      readonly canRead?: CanRead
    }

/** Optional functions of a store that let an operator settle a write whose outcome is unknown. */
export interface RecordKeeper {
  /**
   * Returns the record; `undefined` if there is none. A store around this one that encodes results
   * differently passes `canRead`. Without it, an encrypted result counts as readable.
   */
  inspect(recordId: string, canRead?: CanRead): Promise<RecordView | undefined>
  /**
   * Ends an abandoned record as `freed` or `finished`, one whose result is not stored or cannot be read as
   * `finished`, one that cannot be read as `freed`, and any record of a run that has finished as `forgotten`,
   * which frees its key. `false`, and nothing changes, for another fence, an active lease, another state or a record
   * of another version. The record that it writes is stored for at least a day, whatever later runs do, so that an old
   * run cannot write its record again.
   *
   * @throws TypeError (as a rejection) if `as` has another form.
   */
  resolve(recordId: string, fence: number, as: Resolution): Promise<boolean>
}

/** A record as a store has it, with the moment by the store's clock. Times in ms. */
export interface RecordSnapshot {
  readonly record: StoredRecord
  readonly now: number
}

/** Where a store has its records. */
export interface RecordAccess<S extends RecordSnapshot> {
  read(recordId: string): Promise<S | undefined>
  /** One atomic step. `false`, and nothing changes, if the record has changed since `read` or has a lease again. */
  replace(recordId: string, snapshot: S, next: ResolvedRecord): Promise<boolean>
}

/** The operator's functions on the records of a store. */
export function createRecordKeeper<S extends RecordSnapshot>(
  access: RecordAccess<S>,
): RecordKeeper {
  return {
    async inspect(recordId, canRead = mayBeReadable) {
      const snapshot = await access.read(recordId)
      return snapshot && viewOf(await inspect(snapshot, canRead))
    },
    async resolve(recordId, fence, as) {
      checkResolution(as)
      const snapshot = await access.read(recordId)
      if (snapshot === undefined) return false
      const canRead = (as.type === 'finished' ? as.canRead : undefined) ?? mayBeReadable
      const next = resolve(await inspect(snapshot, canRead), { fence, as, owner: randomUUID() })
      return next !== undefined && access.replace(recordId, snapshot, next)
    },
  }
}

/** An encrypted result counts as readable, because only the encrypting store around this one can decrypt it. */
const mayBeReadable: CanRead = (result) =>
  keyIdOfResult(result) !== undefined || decodeResult(result) !== undefined

async function inspect(
  { record, now }: RecordSnapshot,
  canRead: CanRead,
): Promise<InspectedRecord> {
  const { state } = record
  const isResultReadable =
    state !== 'finished' || (await canRead(record.result, record.fingerprint))
  return { record, now, isResultReadable }
}

/** A type that is misspelt would free the key. */
function checkResolution(as: Resolution): void {
  if (!isObject(as) || !['freed', 'finished', 'forgotten'].includes(as.type)) {
    throw new TypeError("as.type must be 'freed', 'finished' or 'forgotten'")
  }
  if (as.type !== 'finished') {
    if (as.reason === undefined || isShortText(as.reason)) return
    throw new TypeError(
      `as.reason must be a well-formed string of 1 to ${MAX_TEXT_LENGTH} characters`,
    )
  }
  if (!(as.result instanceof Uint8Array)) throw new TypeError('as.result must be a Uint8Array')
}

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

/** A record as it was found. */
interface InspectedRecord extends RecordSnapshot {
  /** Whether its result, if it has one, can be read. */
  readonly isResultReadable: boolean
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

/** The view of a record for operators. */
function viewOf(inspected: InspectedRecord): RecordView {
  const { record, now } = inspected
  const { expiresAt } = record
  const common = {
    state: viewState(inspected),
    ...(hasLease(inspected) && { leaseLeftMs: Math.ceil(leaseUntil(record) - now) }),
    ...(Number.isFinite(expiresAt) && { expiresInMs: Math.ceil(expiresAt - now) }),
  }
  if (record.state === 'unreadable') {
    const { version } = record
    return { fence: 0, ...common, ...(version !== undefined && { recordVersion: version }) }
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
function resolve(inspected: InspectedRecord, settlement: Settlement): ResolvedRecord | undefined {
  const { record, now } = inspected
  const { as, owner } = settlement
  const knownFence = record.state === 'unreadable' ? 0 : record.fence
  if (settlement.fence !== knownFence || !maySettle(inspected, as.type)) return undefined
  const { fence, fingerprint, retentionMs } =
    record.state === 'unreadable'
      ? { fence: record.minFence, fingerprint: '', retentionMs: MIN_TOMBSTONE_MS }
      : record
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

/** The form of an encryption key's id. */
export const KEY_ID_FORM: RegExp = /^[A-Za-z0-9._-]{1,64}$/

const SEALED_OWNER_FORM = /^jwe:([A-Za-z0-9._-]{1,64}):/

/**
 * The owner of a run whose result will be encrypted. It is stored, so that a record without a result names
 * the key that would encrypt one.
 */
export const sealedOwner = (keyId: string, owner: string): string => `jwe:${keyId}:${owner}`

/** The key id in an owner that `sealedOwner` has made; `undefined` for any other owner. */
export const keyIdOf = (owner: string): string | undefined => SEALED_OWNER_FORM.exec(owner)?.[1]

/** Longer than the header of any encrypted result. */
const MAX_HEADER_BYTES = 512

/** The `kid` of a result that is a compact JWE (RFC 7516, sections 4.1.6 and 7.1). */
export function keyIdOfResult({ buffer, byteOffset, byteLength }: Uint8Array): string | undefined {
  const bytes = Buffer.from(buffer, byteOffset, Math.min(byteLength, MAX_HEADER_BYTES))
  const [encodedHeader = '', ...others] = bytes.toString('latin1').split('.')
  if (others.length === 0) return undefined
  try {
    const header: unknown = JSON.parse(Buffer.from(encodedHeader, 'base64url').toString())
    const keyId = isObject(header) ? header['kid'] : undefined
    return typeof keyId === 'string' && KEY_ID_FORM.test(keyId) ? keyId : undefined
  } catch {
    return undefined
  }
}
