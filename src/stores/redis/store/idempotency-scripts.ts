import { isAscii } from 'node:buffer'
import type {
  Ending,
  Reservation,
  ReservationRequest,
  Run,
} from '../../../idempotency/leased/idempotency-store.js'
import { type Script, script } from '../connection/client.js'

/*
 * The transitions of idempotency/leased/record.ts, each as one atomic step. A record is
 * `1|state|fence|retention|size of owner|size of fingerprint|`, followed by owner, fingerprint and
 * result. The states are `r` (running), `d` (done), `u` (done, not stored) and `f` (freed). The time to live of
 * the key holds the lease: a running record lives for lease plus retention, so its time to live minus the
 * retention is the rest of the lease, by the server's clock alone. A run that takes a freed key writes the
 * requested retention plus the rest of the tombstone, so that the tombstone still ends no earlier. A script gets
 * the record (`mine`) as the caller would write it, because one argument costs ioredis less than many.
 */
export const PRELUDE = `
local FORM = '^1|([rduf])|(%d+)|(%d+)|(%d+)|(%d+)|()'
local function parse(value)
  local state, fence, retention, owner_size, fingerprint_size, start = string.match(value, FORM)
  if not state or tonumber(fence) >= 2^53 - 1 or tonumber(retention) >= 2^53 then return true end
  local middle = start + owner_size
  local rest = middle + fingerprint_size
  if rest - 1 > #value then return true end
  return { state = state, fence = fence, retention = retention, value = value, rest = rest,
    owner = string.sub(value, start, middle - 1), fingerprint = string.sub(value, middle, rest - 1) }
end
local function parse_own(value)
  local mine = parse(value)
  if mine == true then error('fence or retention is out of range', 0) end
  return mine
end
local function read()
  local value = redis.pcall('GET', KEYS[1])
  if type(value) == 'table' then
    if string.find(value.err, 'WRONGTYPE', 1, true) then return true end
    return nil, value
  end
  if value then return parse(value) end
end
local function write(value, ttl)
  return redis.pcall('SET', KEYS[1], value, 'PX', ttl)
end
local function tombstone_in(record, mine)
  return math.max(0, record.retention - mine.retention)
end
local function extended(value, mine, tombstone)
  if tombstone == 0 then return value end
  local retention = string.format('%.0f', mine.retention + tombstone)
  return (string.gsub(value, '^(1|%a|%d+|)%d+', '%1' .. retention, 1))
end
local record, fault = read()
if fault then return fault end
`

/** ARGV: the record after its fence (`recordTail`), time to live, `1` if an abandoned run may run again. */
export const RESERVE: Script = script(`${PRELUDE}
if record == true then return { 'unreadable' } end
local tail, ttl, rerun = unpack(ARGV)
local mine = parse_own('1|r|0' .. tail)
local time = redis.call('TIME')
local fence = time[1] * 1000000 + time[2]
local tombstone = 0
if record then
  local own = record.owner == mine.owner
  if record.state == 'f' then
    if own then return { 'running', 0 } end
    tombstone = math.max(0, redis.call('PTTL', KEYS[1]))
  else
    if record.fingerprint ~= mine.fingerprint then return { 'mismatch' } end
    if record.state == 'd' then return { 'finished', string.sub(record.value, record.rest) } end
    if record.state == 'u' then return { 'result_not_stored' } end
    local left = redis.call('PTTL', KEYS[1])
    if left < 0 then return { 'unreadable' } end
    if own then
      redis.call('PEXPIRE', KEYS[1], left)
      return { 'reserved', record.fence }
    end
    left = left - record.retention
    if left > 0 then return { 'running', left } end
    if rerun ~= '1' then return { 'abandoned' } end
    tombstone = tombstone_in(record, mine)
  end
  fence = math.max(fence, record.fence + 1)
end
fence = string.format('%.0f', fence)
local written = write(extended('1|r|' .. fence .. tail, mine, tombstone), ttl + tombstone)
if written.err then return written end
return { 'reserved', fence }
`)

export const reserveArguments = (request: ReservationRequest): string[] => [
  recordTail(request, request.retentionMs),
  String(runningMs(request)),
  request.rerunAbandoned ? '1' : '0',
]

/** Whether the reply to `RESERVE` gives the key to the caller. */
export const isReserved = (reply: unknown): boolean =>
  Array.isArray(reply) && String(reply[0]) === 'reserved'

/** Parses the reply to `RESERVE`, whose strings are Buffers. */
export function readReservation(reply: unknown): Reservation {
  const [first, detail] = Array.isArray(reply) ? reply : []
  const outcome = String(first)
  switch (outcome) {
    case 'reserved':
      return { outcome, fence: Number(detail) }
    case 'running':
      return { outcome, leaseLeftMs: Number(detail) }
    case 'finished':
      return { outcome, result: detail }
    case 'mismatch':
    case 'result_not_stored':
    case 'abandoned':
    case 'unreadable':
      return { outcome }
    default:
      throw new TypeError('the reservation script returned an unknown reply')
  }
}

/** Renews the lease, and writes a record that is gone again. ARGV: the record, time to live. */
export const RENEW: Script = script(`${PRELUDE}
if record == true then return 0 end
local value, ttl = unpack(ARGV)
if record then
  local mine = parse_own(value)
  if record.state ~= 'r' or record.owner ~= mine.owner or record.fence ~= mine.fence then return 0 end
  return redis.call('PEXPIRE', KEYS[1], ttl + tombstone_in(record, mine))
end
local written = write(value, ttl)
if written.err then return written end
return 1
`)

export const renewArguments = (run: Run): string[] => [
  `1|r|${run.fence}${recordTail(run, run.retentionMs)}`,
  String(runningMs(run)),
]

/** ARGV: the record, time to live. If Redis has no memory left, deletes a freed key that has no earlier tombstone. */
export const SETTLE: Script = script(`${PRELUDE}
if record == true then return 0 end
local value, ttl = unpack(ARGV)
local mine = parse_own(value)
local tombstone = 0
if record then
  if record.owner ~= mine.owner or record.fence ~= mine.fence then return 0 end
  if record.state ~= 'r' then return record.state == mine.state and 1 or 0 end
  tombstone = tombstone_in(record, mine)
end
ttl = mine.state == 'f' and math.max(ttl, tombstone) or ttl + tombstone
local written = write(extended(value, mine, tombstone), ttl)
if written.err and mine.state == 'f' and tombstone == 0 then return redis.call('DEL', KEYS[1]) and 1 end
if written.err then return written end
return 1
`)

export function settleArguments(run: Run, ending: Ending): (string | Buffer)[] {
  const [state, ttlMs] = endState(run, ending.type)
  const head = `1|${state}|${run.fence}${recordTail(run, run.retentionMs)}`
  const record = ending.type === 'finished' ? appendResult(head, ending.result) : head
  return [record, String(ttlMs)]
}

/** Returns the state after an ending, and the time to live of the record in milliseconds. */
function endState(run: Run, type: Ending['type']): [string, number] {
  switch (type) {
    case 'finished':
      return ['d', wholeMs(run.retentionMs)]
    case 'not_stored':
      return ['u', wholeMs(run.retentionMs)]
    case 'abandoned':
      return ['r', wholeMs(run.retentionMs)]
    case 'released':
      return ['f', wholeMs(run.leaseMs)]
  }
}

/** Redis accepts only whole milliseconds, and rejects 0. */
export const wholeMs = (ms: number): number => Math.max(1, Math.ceil(ms))

/** A running record lives for its lease plus its retention. */
const runningMs = ({ leaseMs, retentionMs }: Pick<Run, 'leaseMs' | 'retentionMs'>): number =>
  wholeMs(leaseMs) + wholeMs(retentionMs)

type Owner = Pick<Run, 'owner' | 'fingerprint'>

/** Returns the part of a record between its fence and its result. */
export function recordTail(owned: Owner, retentionMs: number): string {
  // A surrogate at the end of `owner` and one at the start of `fingerprint` would join into one character.
  const owner = owned.owner.toWellFormed()
  const fingerprint = owned.fingerprint.toWellFormed()
  const sizes = `${Buffer.byteLength(owner)}|${Buffer.byteLength(fingerprint)}`
  return `|${wholeMs(retentionMs)}|${sizes}|${owner}${fingerprint}`
}

const MAX_BYTES_AS_TEXT = 4096

/** Returns a string if possible, because ioredis writes a command with a Buffer argument in several pieces. */
export function appendResult(
  head: string,
  { buffer, byteOffset, byteLength }: Uint8Array,
): string | Buffer {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  const isText = byteLength <= MAX_BYTES_AS_TEXT && isAscii(bytes)
  return isText ? head + bytes.toString('latin1') : Buffer.concat([Buffer.from(head), bytes])
}
