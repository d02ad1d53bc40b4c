import { randomUUID } from 'node:crypto'
import { isObject, isShortText, MAX_TEXT_LENGTH } from '../../base/options.js'
import { decodeResult } from '../buffered-response/stored-result.js'
import { keyIdOfResult } from './encryption-key-id.js'
import type { CanRead, RecordKeeper, Resolution } from './record-view.js'
import {
  type InspectedRecord,
  type ResolvedRecord,
  resolve,
  type StoredRecord,
  viewOf,
} from './resolution.js'

/** A record as a store has it, with the moment by the store's clock. */
export interface RecordSnapshot {
  readonly record: StoredRecord
  readonly now: number
}

/** Where a store has its records. */
export interface RecordAccess<S extends RecordSnapshot> {
  read(recordId: string): Promise<S | undefined>
  /**
   * One atomic step: `false`, and nothing changes, when the record has changed since `read`, or
   * its run has renewed the lease meanwhile.
   */
  replace(recordId: string, snapshot: S, next: ResolvedRecord): Promise<boolean>
}

/** The operator's functions on the records of a store. */
export function createRecordKeeper<S extends RecordSnapshot>(
  access: RecordAccess<S>,
): RecordKeeper {
  return {
    async inspect(recordId, canRead = mayBeReadable) {
      checkRecordId(recordId)
      const snapshot = await access.read(recordId)
      return snapshot && viewOf(await inspect(snapshot, canRead))
    },
    async resolve(recordId, fence, as) {
      checkRecordId(recordId)
      checkFence(fence)
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

function checkRecordId(recordId: unknown): void {
  if (typeof recordId !== 'string' || recordId === '') {
    throw new TypeError('recordId must be a non-empty string')
  }
}

function checkFence(fence: unknown): void {
  if (!Number.isSafeInteger(fence) || (fence as number) < 0) {
    throw new TypeError('fence must be a safe integer of at least 0')
  }
}

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
