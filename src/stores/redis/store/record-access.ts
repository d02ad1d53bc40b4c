import {
  MAX_RUN_MS,
  type RecordAccess,
  type RecordSnapshot,
  type ResolvedRecord,
  type StoredRecord,
} from '../../../idempotency/leased/record-keeper.js'
import { type Script, script } from '../connection/client.js'
import { type Connection, NotConfirmed, startRedisCall } from '../connection/redis-connection.js'
import { appendResult, PRELUDE, recordTail } from './idempotency-scripts.js'

interface RedisSnapshot extends RecordSnapshot {
  /** The SHA-1 of the stored value. */
  readonly digest: string
}

interface RecordAccessOptions {
  readonly timeoutMs: number
  /** Returns the key of a record in Redis. */
  keyOf(recordId: string): string
}

/** Gives an operator access to the records in Redis. */
export function createRecordAccess(
  connection: Connection,
  { timeoutMs, keyOf }: RecordAccessOptions,
): RecordAccess<RedisSnapshot> {
  return {
    async read(recordId) {
      const call = { script: INSPECT, keys: [keyOf(recordId)], args: [] }
      const reply = await connection.run(call).catch((error) => {
        // The script only reads, so nothing was written even if it ran.
        throw error instanceof NotConfirmed ? notWrittenError(error) : error
      })
      return reply === null ? undefined : readSnapshot(reply as InspectReply)
    },
    async replace(recordId, { digest }, next) {
      const args = [digest, encodeRecord(next), String(Math.ceil(next.expiresAt))]
      const call = { script: RESOLVE, keys: [keyOf(recordId)], args }
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

const notWrittenError = ({ message, code }: NotConfirmed): NotConfirmed =>
  new NotConfirmed(message, false, code)

const uncertainError = (why: string): NotConfirmed =>
  new NotConfirmed(`the reply was lost, and it is unknown whether it was written: ${why}`, true)

const STORED = `
local function stored()
  if record ~= true then return record.value end
  local value = redis.pcall('GET', KEYS[1])
  return type(value) == 'string' and value or ''
end
`

/**
 * Reads a record: its digest, time to live and the server's time in microseconds, then its fields; of one that cannot
 * be read, only the version of its format.
 */
export const INSPECT: Script = script(`${PRELUDE}${STORED}
if not record then return false end
local ttl, time = redis.call('PTTL', KEYS[1]), redis.call('TIME')
time = string.format('%.0f', time[1] * 1000000 + time[2])
local value = stored()
local digest = redis.sha1hex(value)
if record == true then
  local version = string.match(value, '^([1-9]%d?%d?%d?%d?%d?)|') or '1'
  return { digest, ttl, time, 'unreadable', version }
end
return { digest, ttl, time, record.state, record.fence, record.retention, record.owner,
  record.fingerprint, string.sub(record.value, record.rest) }
`)

/**
 * Replaces a record whose run has no lease, if it is still as `INSPECT` has read it: its state, its fence and the
 * rest of its value. ARGV: the digest that was read, the new record, its time to live. A record of the same owner was
 * written by an earlier attempt of this call.
 */
export const RESOLVE: Script = script(`${PRELUDE}${STORED}
if not record then return 0 end
local digest, value, ttl = unpack(ARGV)
if record ~= true then
  if record.owner == parse_own(value).owner then return 1 end
  local may_have_lease = record.state == 'r'
  if may_have_lease and redis.call('PTTL', KEYS[1]) > tonumber(record.retention) then return 0 end
end
if redis.sha1hex(stored()) ~= digest then return 0 end
local written = write(value, ttl)
if written.err then return written end
return 1
`)

type InspectReply = readonly [
  digest: Buffer,
  ttlMs: number,
  time: Buffer,
  state: Buffer,
  ...fields: Buffer[],
]

const MICROSECONDS_PER_MS = 1000

/** Its times are relative to the read. */
function readSnapshot(reply: InspectReply): RedisSnapshot {
  return { digest: String(reply[0]), record: readRecord(reply), now: 0 }
}

function readRecord([_digest, ttlMs, timeText, letter, ...fields]: InspectReply): StoredRecord {
  const time = Number(timeText)
  // A negative time to live is none.
  const expiresAt = ttlMs < 0 ? Number.POSITIVE_INFINITY : ttlMs
  const [first, retention, owner, fingerprint, rest = Buffer.alloc(0)] = fields
  if (String(letter) === 'unreadable') {
    const version = String(first)
    const common = { state: 'unreadable', minFence: time, expiresAt } as const
    return version === '1' ? common : { ...common, version }
  }
  const fence = Number(first)
  const retentionMs = Number(retention)
  const base = {
    owner: String(owner),
    fingerprint: String(fingerprint),
    fence,
    retentionMs,
    expiresAt,
  }
  // A fence is the time in microseconds at which its run began, or one more than an earlier fence.
  const latestRunEnd = (fence - time) / MICROSECONDS_PER_MS + MAX_RUN_MS
  // The time to live minus the retention is the lease.
  const leaseUntil = Number.isFinite(expiresAt) ? expiresAt - retentionMs : undefined
  switch (String(letter)) {
    case 'r':
      // If another program has removed the time to live, the run may still be active.
      return { ...base, state: 'running', leaseUntil: leaseUntil ?? latestRunEnd }
    case 'u':
      return { ...base, state: 'not_stored' }
    case 'd':
      return { ...base, state: 'finished', result: rest }
    default:
      return { ...base, state: 'freed', reason: String(rest) || undefined }
  }
}

/** Returns a record in the format of the scripts. In a freed record, the reason takes the place of the result. */
function encodeRecord(record: ResolvedRecord): string | Buffer {
  const tail = recordTail(record, record.retentionMs)
  if (record.state === 'freed') return `1|f|${record.fence}${tail}${record.reason ?? ''}`
  return appendResult(`1|d|${record.fence}${tail}`, record.result)
}
