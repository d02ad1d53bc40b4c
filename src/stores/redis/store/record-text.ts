import { createHash } from 'node:crypto'
import type { IdempotencyRecord } from '../../../idempotency/leased/record.js'
import {
  type KeptRecord,
  LONGEST_RUN_MS,
  type ResolvedRecord,
} from '../../../idempotency/leased/resolution.js'
import { behindFence, joined } from './reservation.js'

// The records of idempotency-scripts.ts as text, for the few who read and write them from outside.

/** A value as it lies in Redis; of a key that holds no string, only the type is known. */
export interface KeptValue {
  readonly type: string
  readonly value: Buffer
  /** Milliseconds; negative when the key never expires. */
  readonly ttlMs: number
  /** Redis's own time, in microseconds since the epoch. */
  readonly time: number
}

const FORM = /^1\|([rduf])\|(\d+)\|(\d+)\|(\d+)\|(\d+)\|/
/** Sizes that reach so far into a result would show some of it as owner or fingerprint. */
const RESULT_START = /\[\d{3},\[/
const OTHER_VERSION = /^([1-9]\d{0,5})\|/
/** Longer heads are none that the scripts write. */
const MOST_HEAD_OCTETS = 256
const FENCE_LIMIT = Number.MAX_SAFE_INTEGER
const RETENTION_LIMIT = 2 ** 53
const MICROSECONDS_PER_MS = 1000

/** Reads the reply to `LOOK`. */
export function readLook(reply: unknown): KeptValue {
  const [type, value, ttlMs, time] = reply as [Buffer, Buffer, number, Buffer]
  return { type: String(type), value, ttlMs: Number(ttlMs), time: Number(time) }
}

/** What the value says, with all times counted from now. */
export function parseRecord(kept: KeptValue): KeptRecord {
  const { type, value, ttlMs, time } = kept
  const expiresAt = ttlMs < 0 ? Number.POSITIVE_INFINITY : ttlMs
  const head = type === 'string' ? value.toString('latin1', 0, MOST_HEAD_OCTETS) : ''
  const record = readValue(head, kept, expiresAt)
  if (record !== undefined) return record
  const version = OTHER_VERSION.exec(head)?.[1]
  return {
    state: 'unreadable',
    leastFence: time,
    expiresAt,
    ...(version !== '1' && { version }),
  }
}

function readValue(
  head: string,
  { value, time }: KeptValue,
  expiresAt: number,
): IdempotencyRecord | undefined {
  const [whole, letter, ...digits] = FORM.exec(head) ?? []
  if (whole === undefined) return undefined
  const [fence = 0, retentionMs = 0, ownerSize = 0, fingerprintSize = 0] = digits.map(Number)
  const middle = whole.length + ownerSize
  const rest = middle + fingerprintSize
  if (fence >= FENCE_LIMIT || retentionMs >= RETENTION_LIMIT || rest > value.length)
    return undefined
  if (RESULT_START.test(value.toString('latin1', whole.length, rest))) return undefined
  const base = {
    owner: value.toString('utf8', whole.length, middle),
    fingerprint: value.toString('utf8', middle, rest),
    fence,
    retentionMs,
    expiresAt,
  }
  const endsAsRun = (fence - time) / MICROSECONDS_PER_MS + LONGEST_RUN_MS
  // Beyond the retention, what is left of a time to live is the lease.
  const leaseUntil = Number.isFinite(expiresAt) ? expiresAt - retentionMs : undefined
  switch (letter) {
    case 'r':
      // Where somebody has taken the time to live away, its run may be alive.
      return { ...base, state: 'running', leaseUntil: leaseUntil ?? endsAsRun }
    case 'u':
      return { ...base, state: 'unstored', leaseUntil: leaseUntil ?? 0 }
    case 'd':
      return { ...base, state: 'finished', result: value.subarray(rest) }
    default:
      return { ...base, state: 'freed' }
  }
}

/** Names what was seen, so that a script can tell whether it is still there. */
export const tokenOf = ({ type, value }: KeptValue): string =>
  type === 'string' ? createHash('sha1').update(value).digest('hex') : type

/** A record as the scripts keep it. */
export function textOf(record: ResolvedRecord): string | Buffer {
  const behind = behindFence(record, record.retentionMs)
  if (record.state === 'freed') return `1|f|${record.fence}${behind}`
  return joined(`1|d|${record.fence}${behind}`, record.result)
}
