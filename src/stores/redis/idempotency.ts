import { isAscii } from 'node:buffer'
import type { Ending, Reservation, ReservationRequest, Run } from '../../idempotency/store.js'
import { type Script, script } from './script.js'

/*
 * The transitions of idempotency/record.ts, each as one atomic step. A record is
 * `1|state|fence|retention|size of owner|size of fingerprint|` and then owner, fingerprint and
 * result. The lease is in its time to live: a running record lives for the lease and the retention,
 * so that what is left beyond the retention is the lease, by the server's clock alone.
 */
const PRELUDE = `
local FORM = '^1|([rduf])|(%d+)|(%d+)|(%d+)|(%d+)|()'
local function parse(value)
  local state, fence, retention, owner_size, fingerprint_size, start = string.match(value, FORM)
  if not state or tonumber(fence) >= 2^53 - 1 or tonumber(retention) >= 2^53 then return true end
  local middle = start + owner_size
  local rest = middle + fingerprint_size
  if rest - 1 > #value then return true end
  return { state = state, fence = fence, retention = retention,
    owner = string.sub(value, start, middle - 1),
    fingerprint = string.sub(value, middle, rest - 1), result = string.sub(value, rest) }
end
local function read()
  local value = redis.pcall('GET', KEYS[1])
  if type(value) == 'table' then
    if string.find(value.err, 'WRONGTYPE', 1, true) then return true end
    return nil, value
  end
  if value then return parse(value) end
end
local function write(state, ttl, owner, fence, retention, fingerprint, result)
  local head = table.concat({ '1', state, fence, retention, #owner, #fingerprint, owner }, '|')
  return redis.pcall('SET', KEYS[1], head .. fingerprint .. result, 'PX', ttl)
end
`

/** ARGV: owner, fingerprint, lease, retention, rerun. */
export const RESERVE: Script = script(`${PRELUDE}
local owner, fingerprint, lease, retention, rerun = unpack(ARGV)
local record, fault = read()
if fault then return fault end
if record == true then return { 'unreadable' } end
local time = redis.call('TIME')
local fence = time[1] * 1000000 + time[2]
if record then
  local own = record.owner == owner
  if record.state == 'f' then
    if own then return { 'running', 0 } end
  else
    if record.fingerprint ~= fingerprint then return { 'mismatch' } end
    if record.state == 'd' then return { 'finished', record.result } end
    if record.state == 'u' then return { 'result_not_stored' } end
    local ttl = redis.call('PTTL', KEYS[1])
    if ttl < 0 then return { 'unreadable' } end
    if own then
      redis.call('PEXPIRE', KEYS[1], ttl)
      return { 'reserved', record.fence }
    end
    local left = ttl - record.retention
    if left > 0 then return { 'running', left } end
    if rerun ~= '1' then return { 'abandoned' } end
  end
  fence = math.max(fence, record.fence + 1)
end
fence = string.format('%.0f', fence)
local written = write('r', lease + retention, owner, fence, retention, fingerprint, '')
if written.err then return written end
return { 'reserved', fence }
`)

/** ARGV: owner, fence, fingerprint, lease, retention. */
export const RENEW: Script = script(`${PRELUDE}
local owner, fence, fingerprint, lease, retention = unpack(ARGV)
local record, fault = read()
if fault then return fault end
if record == true then return 0 end
if record then
  if record.state ~= 'r' or record.owner ~= owner or record.fence ~= fence then return 0 end
  return redis.call('PEXPIRE', KEYS[1], lease + record.retention)
end
local written = write('r', lease + retention, owner, fence, retention, fingerprint, '')
if written.err then return written end
return 1
`)

/**
 * ARGV: owner, fence, fingerprint, retention, state to write, time to live, result. A server that is
 * full can still free the key.
 */
export const SETTLE: Script = script(`${PRELUDE}
local owner, fence, fingerprint, retention, state, ttl, result = unpack(ARGV)
local record, fault = read()
if fault then return fault end
if record == true then return 0 end
if record then
  if record.owner ~= owner or record.fence ~= fence then return 0 end
  if record.state == 'd' or record.state == 'f' then return record.state == state and 1 or 0 end
  if record.state == 'u' and state == 'r' then return 0 end
end
local written = write(state, ttl, owner, fence, retention, fingerprint, result)
if written.err and state == 'f' then return redis.call('DEL', KEYS[1]) and 1 end
if written.err then return written end
return 1
`)

/**
 * Takes back a reservation whose fence nobody has learned. ARGV: owner, fingerprint, lease. What is
 * left for a while turns away a reservation of this owner that arrives even later.
 */
export const TAKE_BACK: Script = script(`${PRELUDE}
local owner, fingerprint, lease = unpack(ARGV)
local record, fault = read()
if fault then return fault end
if record == true then return 0 end
if record and record.owner ~= owner then return 0 end
local written = write('f', lease, owner, record and record.fence or '0', lease, fingerprint, '')
if written.err then redis.call('DEL', KEYS[1]) end
return 1
`)

/** Whether the reply to `RESERVE` says that the key is the caller's. */
export const isReserved = (reply: unknown): boolean =>
  Array.isArray(reply) && String(reply[0]) === 'reserved'

/** Redis takes whole milliseconds, and none as an error. */
const wholeMs = (ms: number): string => String(Math.max(1, Math.ceil(ms)))

export const reserveArguments = (request: ReservationRequest): string[] => [
  request.owner,
  request.fingerprint,
  wholeMs(request.leaseMs),
  wholeMs(request.retentionMs),
  request.rerunAbandoned ? '1' : '0',
]

export const renewArguments = (run: Run): string[] => [
  run.owner,
  String(run.fence),
  run.fingerprint,
  wholeMs(run.leaseMs),
  wholeMs(run.retentionMs),
]

export function settleArguments(run: Run, ending: Ending): (string | Buffer)[] {
  const [state, ttlMs] = endState(run, ending.type)
  return [
    run.owner,
    String(run.fence),
    run.fingerprint,
    wholeMs(run.retentionMs),
    state,
    wholeMs(ttlMs),
    ending.type === 'finished' ? argumentOf(ending.result) : '',
  ]
}

const MOST_OCTETS_AS_TEXT = 4096

/** ioredis takes a command apart for each argument that is no text. */
function argumentOf({ buffer, byteOffset, byteLength }: Uint8Array): string | Buffer {
  const octets = Buffer.from(buffer, byteOffset, byteLength)
  const isText = byteLength <= MOST_OCTETS_AS_TEXT && isAscii(octets)
  return isText ? octets.toString('latin1') : octets
}

/** The state that an ending leaves, and how long the record lives in it. */
function endState({ leaseMs, retentionMs }: Run, type: Ending['type']): [string, number] {
  switch (type) {
    case 'finished':
      return ['d', retentionMs]
    case 'streaming':
      return ['u', leaseMs + retentionMs]
    case 'streamed':
      return ['u', retentionMs]
    case 'abandoned':
      return ['r', retentionMs]
    case 'released':
      return ['f', leaseMs]
  }
}

export const takeBackArguments = (request: ReservationRequest): string[] => [
  request.owner,
  request.fingerprint,
  wholeMs(request.leaseMs),
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
