import { isAscii } from 'node:buffer'
import type { Ending, Reservation, ReservationRequest, Run } from '../../idempotency/store.js'
import { type Script, script } from './script.js'

/*
 * The transitions of idempotency/record.ts, each as one atomic step. A record is
 * `1|state|fence|retention|size of owner|size of fingerprint|` and then owner, fingerprint and
 * result. The lease is in its time to live: a running record lives for the lease and the retention,
 * so that what is left beyond the retention is the lease, by the server's clock alone. A script gets
 * the record as the caller would write it: one argument costs ioredis less than many.
 */
const PRELUDE = `
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
local record, fault = read()
if fault then return fault end
`

/** ARGV: the record from behind its fence, time to live, rerun. */
export const RESERVE: Script = script(`${PRELUDE}
if record == true then return { 'unreadable' } end
local behind, ttl, rerun = unpack(ARGV)
local mine = parse_own('1|r|0' .. behind)
local time = redis.call('TIME')
local fence = time[1] * 1000000 + time[2]
if record then
  local own = record.owner == mine.owner
  if record.state == 'f' then
    if own then return { 'running', 0 } end
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
  end
  fence = math.max(fence, record.fence + 1)
end
fence = string.format('%.0f', fence)
local written = write('1|r|' .. fence .. behind, ttl)
if written.err then return written end
return { 'reserved', fence }
`)

/** ARGV: the record, time to live. */
export const RENEW: Script = script(`${PRELUDE}
if record == true then return 0 end
local value, ttl = unpack(ARGV)
if record then
  local mine = parse_own(value)
  if record.state ~= 'r' or record.owner ~= mine.owner or record.fence ~= mine.fence then return 0 end
  return redis.call('PEXPIRE', KEYS[1], ttl - mine.retention + record.retention)
end
local written = write(value, ttl)
if written.err then return written end
return 1
`)

/** ARGV: the record, time to live. A server that is full can still free the key. */
export const SETTLE: Script = script(`${PRELUDE}
if record == true then return 0 end
local value, ttl = unpack(ARGV)
local mine = parse_own(value)
if record then
  if record.owner ~= mine.owner or record.fence ~= mine.fence then return 0 end
  if record.state == 'd' or record.state == 'f' then return record.state == mine.state and 1 or 0 end
  if record.state == 'u' and mine.state == 'r' then return 0 end
end
local written = write(value, ttl)
if written.err and mine.state == 'f' then return redis.call('DEL', KEYS[1]) and 1 end
if written.err then return written end
return 1
`)

/**
 * Takes back a reservation whose fence nobody has learned. ARGV: the record from behind its fence,
 * time to live. What is left for a while turns away a reservation of this owner that arrives even
 * later.
 */
export const TAKE_BACK: Script = script(`${PRELUDE}
if record == true then return 0 end
local behind, ttl = unpack(ARGV)
if record and record.owner ~= parse_own('1|f|0' .. behind).owner then return 0 end
local fence = record and record.fence or '0'
if write('1|f|' .. fence .. behind, ttl).err then redis.call('DEL', KEYS[1]) end
return 1
`)

/** Whether the reply to `RESERVE` says that the key is the caller's. */
export const isReserved = (reply: unknown): boolean =>
  Array.isArray(reply) && String(reply[0]) === 'reserved'

/** Redis takes whole milliseconds, and none as an error. */
const wholeMs = (ms: number): number => Math.max(1, Math.ceil(ms))

/** A running record lives for its lease and its retention. */
const runningMs = ({ leaseMs, retentionMs }: Pick<Run, 'leaseMs' | 'retentionMs'>): number =>
  wholeMs(leaseMs) + wholeMs(retentionMs)

/** A record from behind its fence to its result. */
function behindFence(owned: Owned, retentionMs: number): string {
  // Halves of a character would become one where they meet.
  const owner = owned.owner.toWellFormed()
  const fingerprint = owned.fingerprint.toWellFormed()
  const sizes = `${Buffer.byteLength(owner)}|${Buffer.byteLength(fingerprint)}`
  return `|${wholeMs(retentionMs)}|${sizes}|${owner}${fingerprint}`
}

type Owned = Pick<Run, 'owner' | 'fingerprint'>

export const reserveArguments = (request: ReservationRequest): string[] => [
  behindFence(request, request.retentionMs),
  String(runningMs(request)),
  request.rerunAbandoned ? '1' : '0',
]

export const renewArguments = (run: Run): string[] => [
  `1|r|${run.fence}${behindFence(run, run.retentionMs)}`,
  String(runningMs(run)),
]

export function settleArguments(run: Run, ending: Ending): (string | Buffer)[] {
  const [state, ttlMs] = endState(run, ending.type)
  const head = `1|${state}|${run.fence}${behindFence(run, run.retentionMs)}`
  const record = ending.type === 'finished' ? joined(head, ending.result) : head
  return [record, String(ttlMs)]
}

const MOST_OCTETS_AS_TEXT = 4096

/** As text where it can be: ioredis builds a command that has an argument of octets from pieces. */
function joined(head: string, { buffer, byteOffset, byteLength }: Uint8Array): string | Buffer {
  const octets = Buffer.from(buffer, byteOffset, byteLength)
  const isText = byteLength <= MOST_OCTETS_AS_TEXT && isAscii(octets)
  return isText ? head + octets.toString('latin1') : Buffer.concat([Buffer.from(head), octets])
}

/** The state that an ending leaves, and how many milliseconds the record lives in it. */
function endState(run: Run, type: Ending['type']): [string, number] {
  switch (type) {
    case 'finished':
      return ['d', wholeMs(run.retentionMs)]
    case 'streaming':
      return ['u', runningMs(run)]
    case 'streamed':
      return ['u', wholeMs(run.retentionMs)]
    case 'abandoned':
      return ['r', wholeMs(run.retentionMs)]
    case 'released':
      return ['f', wholeMs(run.leaseMs)]
  }
}

export const takeBackArguments = (request: ReservationRequest): string[] => [
  behindFence(request, request.leaseMs),
  String(wholeMs(request.leaseMs)),
]

/** Reads the reply to `RESERVE`, whose strings come as octets. */
export function readReservation(reply: unknown): Reservation {
  const [outcome, detail] = Array.isArray(reply) ? reply : []
  switch (String(outcome)) {
    case 'reserved':
      return { outcome: 'reserved', fence: Number(detail) }
    case 'running':
      return { outcome: 'running', leaseLeftMs: Number(detail) }
    case 'finished':
      return { outcome: 'finished', result: detail }
    case 'mismatch':
    case 'result_not_stored':
    case 'abandoned':
    case 'unreadable':
      return { outcome: String(outcome) as 'mismatch' }
    default:
      throw new TypeError('the reservation script gave a reply that it cannot give')
  }
}
