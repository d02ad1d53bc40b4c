import { createHash } from 'node:crypto'
import type { IdempotencyRecord } from '../../../idempotency/leased/record.js'
import type { RecordAccess, RecordSnapshot } from '../../../idempotency/leased/record-keeper.js'
import {
  MAX_RUN_MS,
  type ResolvedRecord,
  type StoredRecord,
} from '../../../idempotency/leased/resolution.js'
import { NotConfirmed, type Script, script, startRedisCall } from '../connection/redis-call.js'
import type { Connection } from '../connection/redis-connection.js'
import { appendResult, recordTail } from './idempotency-scripts.js'

interface ValueSnapshot extends RecordSnapshot {
  readonly stored: StoredValue
}

interface RecordAccessOptions {
  readonly timeoutMs: number
  /** Returns the key of a record in Redis. */
  keyOf(recordId: string): string
}

const ANY_TTL_MS = Number.MAX_SAFE_INTEGER

/** Gives access to the records in Redis. */
export function createRecordAccess(
  connection: Connection,
  { timeoutMs, keyOf }: RecordAccessOptions,
): RecordAccess<ValueSnapshot> {
  return {
    async read(recordId) {
      const call = { script: READ_RECORD, key: keyOf(recordId), args: [] }
      const reply = await connection.run(call).catch((error) => {
        // The script only reads, so nothing was written even if it ran.
        throw error instanceof NotConfirmed ? notWrittenError(error) : error
      })
      if (reply === null) return undefined
      const stored = parseStoredValue(reply)
      // All times of the record are relative to this read.
      return { stored, record: parseRecord(stored), now: 0 }
    },
    async replace(recordId, snapshot, next) {
      const args = [
        digestValue(snapshot.stored),
        maxTtlMs(snapshot),
        encodeRecord(next),
        String(Math.ceil(next.expiresAt)),
      ]
      const call = { script: REPLACE, key: keyOf(recordId), args }
      const state = startRedisCall(timeoutMs)
      const reply = await connection.run(call, state).catch((error: Error) => {
        throw state.isRepeated ? uncertainError(error.message) : error
      })
      // The first attempt may have written before another writer changed the record.
      if (reply !== 1 && state.isRepeated) throw uncertainError('the record has changed since')
      return reply === 1
    },
  }
}

/** Returns the longest time to live that the record can have if its run has not renewed the lease. */
function maxTtlMs({ stored, record }: ValueSnapshot): string {
  if (stored.ttlMs < 0) return String(stored.ttlMs)
  return String(record.state === 'running' ? record.retentionMs : ANY_TTL_MS)
}

const notWrittenError = ({ message, code }: NotConfirmed): NotConfirmed =>
  new NotConfirmed(message, false, code)

const uncertainError = (why: string): NotConfirmed =>
  new NotConfirmed(`the reply was lost, and it is unknown whether it was written: ${why}`, true)

/** Reads the value of a key, its time to live and the server's time, atomically. */
export const READ_RECORD: Script = script(`
local type = redis.call('TYPE', KEYS[1]).ok
if type == 'none' then return false end
local value = type == 'string' and redis.call('GET', KEYS[1]) or ''
local time = redis.call('TIME')
return { type, value, redis.call('PTTL', KEYS[1]), string.format('%.0f', time[1] * 1000000 + time[2]) }
`)

/**
 * Replaces a value if it has not changed since it was read. ARGV: the expected value (the SHA-1 of a string, otherwise
 * its type), its longest possible time to live by now, the new value, the new time to live. The time to live is
 * compared because a renewal changes nothing else. If the new value is already there, an earlier attempt wrote it.
 */
export const REPLACE: Script = script(`
local expected, max_ttl, value, ttl = unpack(ARGV)
local type = redis.call('TYPE', KEYS[1]).ok
if type == 'string' then
  local current = redis.call('GET', KEYS[1])
  if current == value then return 1 end
  type = redis.sha1hex(current)
end
if type ~= expected or redis.call('PTTL', KEYS[1]) > tonumber(max_ttl) then return 0 end
local written = redis.pcall('SET', KEYS[1], value, 'PX', ttl)
if written.err then return written end
return 1
`)

// The record format of idempotency-scripts.ts, parsed here for `createRecordAccess`, outside those scripts.

/** A value in Redis; for a key that holds no string, only the type is known. */
interface StoredValue {
  readonly type: string
  readonly value: Buffer
  /** Milliseconds; negative if the key never expires. */
  readonly ttlMs: number
  /** The time of the Redis server, in microseconds since the epoch. */
  readonly time: number
}

const RECORD_FORM = /^1\|([rduf])\|(\d+)\|(\d+)\|(\d+)\|(\d+)\|/
/** The start of a result. Within owner or fingerprint, it shows that the sizes are wrong and reach into a result. */
const RESULT_START = /\[\d{3},\[/
const OTHER_VERSION = /^([1-9]\d{0,5})\|/
/** More than the fields before the owner ever take. */
const MAX_HEAD_BYTES = 256
const FENCE_LIMIT = Number.MAX_SAFE_INTEGER
const RETENTION_LIMIT = 2 ** 53
const MICROSECONDS_PER_MS = 1000

/** Parses the reply to `READ_RECORD`. */
function parseStoredValue(reply: unknown): StoredValue {
  const [type, value, ttlMs, time] = reply as [Buffer, Buffer, number, Buffer]
  return { type: String(type), value, ttlMs: Number(ttlMs), time: Number(time) }
}

/** Parses a value into a record whose times are relative to the read. */
function parseRecord(stored: StoredValue): StoredRecord {
  const { type, value, ttlMs, time } = stored
  const expiresAt = ttlMs < 0 ? Number.POSITIVE_INFINITY : ttlMs
  const head = type === 'string' ? value.toString('latin1', 0, MAX_HEAD_BYTES) : ''
  const record = parseFields(head, stored, expiresAt)
  if (record !== undefined) return record
  const version = OTHER_VERSION.exec(head)?.[1]
  return {
    state: 'unreadable',
    minFence: time,
    expiresAt,
    ...(version !== '1' && { version }),
  }
}

function parseFields(
  head: string,
  { value, time }: StoredValue,
  expiresAt: number,
): IdempotencyRecord | undefined {
  const [matched, letter, ...digits] = RECORD_FORM.exec(head) ?? []
  if (matched === undefined) return undefined
  const [fence = 0, retentionMs = 0, ownerSize = 0, fingerprintSize = 0] = digits.map(Number)
  const ownerEnd = matched.length + ownerSize
  const resultAt = ownerEnd + fingerprintSize
  const isInRange = fence < FENCE_LIMIT && retentionMs < RETENTION_LIMIT
  if (!isInRange || resultAt > value.length) return undefined
  if (RESULT_START.test(value.toString('latin1', matched.length, resultAt))) return undefined
  const base = {
    owner: value.toString('utf8', matched.length, ownerEnd),
    fingerprint: value.toString('utf8', ownerEnd, resultAt),
    fence,
    retentionMs,
    expiresAt,
  }
  // A fence is the time in microseconds at which its run began, or one more than an earlier fence.
  const latestRunEnd = (fence - time) / MICROSECONDS_PER_MS + MAX_RUN_MS
  // The time to live minus the retention is the lease.
  const leaseUntil = Number.isFinite(expiresAt) ? expiresAt - retentionMs : undefined
  switch (letter) {
    case 'r':
      // If another program has removed the time to live, the run may still be active.
      return { ...base, state: 'running', leaseUntil: leaseUntil ?? latestRunEnd }
    case 'u':
      return { ...base, state: 'not_stored' }
    case 'd':
      return { ...base, state: 'finished', result: value.subarray(resultAt) }
    default:
      return { ...base, state: 'freed', reason: value.toString('utf8', resultAt) || undefined }
  }
}

/** Returns what `REPLACE` compares with the value in Redis: the SHA-1 of a string, otherwise the type. */
const digestValue = ({ type, value }: StoredValue): string =>
  type === 'string' ? createHash('sha1').update(value).digest('hex') : type

/** Returns a record in the format of the scripts. In a freed record, the reason takes the place of the result. */
function encodeRecord(record: ResolvedRecord): string | Buffer {
  const tail = recordTail(record, record.retentionMs)
  if (record.state === 'freed') return `1|f|${record.fence}${tail}${record.reason ?? ''}`
  return appendResult(`1|d|${record.fence}${tail}`, record.result)
}
