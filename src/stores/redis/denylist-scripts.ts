import { type Script, script } from './script.js'

/*
 * A denylist is five keys in one slot:
 *
 * - version: `number nonce`. The nonce is the attempt's that wrote it, so that who has lost a reply
 *   finds its own.
 * - entries: target -> `number|end|cut-off`, all that receivers read; `-` for none.
 * - reasons: target -> what people read.
 * - marks: target -> `number|second|whether it was listed|nonce`, left by allowing it: who asks again
 *   finds its own, and does not end what somebody has denied meanwhile.
 * - receivers: instance -> `version|highest number|silence allowed|seen|name`, times in ms.
 *
 * A number lies above the last one, above the server's clock in µs, and above all that receivers have
 * seen: a server that has lost writes in a failover must not write numbers below theirs.
 *
 * A script that fails in the middle is not undone. What may be refused (a right that the user lacks, a
 * key of another type) comes before what counts: the entry that is written, or taken away, is the last.
 */
const PRELUDE = `
local VERSION, ENTRIES, REASONS, MARKS, RECEIVERS = unpack(KEYS)
local MOST = 2^53 - 2
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local now_ms = math.floor(now * 1000)
local function each(key)
  local rows, at = redis.call('HGETALL', key), -1
  return function()
    at = at + 2
    return rows[at], rows[at + 1]
  end
end
local function number_of(text)
  local number = tonumber(text)
  return number and number < MOST and number or 0
end
local function parse_receiver(row)
  local version, highest, silence, seen, name =
    string.match(row, '^(%d+)|(%d+)|(%d+)|(%d+)|(.+)$')
  if not version then return nil end
  silence, seen = tonumber(silence), tonumber(seen)
  if seen + silence < now_ms or seen > now_ms + silence then return nil end
  return { version = version, highest = number_of(highest), seen = seen, name = name }
end
`

const WRITING = `${PRELUDE}
local function parse_entry(row)
  local number, ends, cutoff = string.match(row, '^(%d+)|([%d.-]+)|([%d.-]+)$')
  if not number then return nil end
  local entry = { ends = ends, cutoff = cutoff }
  if ends ~= '-' then
    entry.second = tonumber(ends)
    if not entry.second then return nil end
  end
  if cutoff ~= '-' and not tonumber(cutoff) then return nil end
  return entry
end
local function later(one, other)
  if one == '-' or other == '-' then return '-' end
  return tonumber(one) >= tonumber(other) and one or other
end
local last_number, last_nonce = string.match(redis.call('GET', VERSION) or '', '^(%d+) (%S+)$')
local function next_number()
  local last = number_of(last_number)
  for _, row in each(RECEIVERS) do
    local receiver = parse_receiver(row)
    if receiver then last = math.max(last, receiver.highest) end
  end
  return string.format('%.0f', math.max(time[1] * 1000000 + time[2], last + 1))
end
local function publish(number, nonce)
  redis.call('SET', VERSION, number .. ' ' .. nonce)
end
`

/** Tells version and time. */
export const POLL: Script = script(`
local time = redis.call('TIME')
return { redis.call('GET', KEYS[1]), time[1], time[2] }
`)

/** Tells version, time, entries and marks. */
export const READ: Script = script(`
local time = redis.call('TIME')
return { redis.call('GET', KEYS[1]), time[1], time[2],
  redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[4]) }
`)

/** As `READ`, and the reasons. */
export const READ_WITH_REASONS: Script = script(`
local time = redis.call('TIME')
return { redis.call('GET', KEYS[1]), time[1], time[2],
  redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[4]), redis.call('HGETALL', KEYS[3]) }
`)

/**
 * ARGV: nonce, target, end, cut-off, reason, the most entries. Removes entries that have ended. It reads
 * every entry, to find the damaged and the ended ones: 20 ms of the server at the most that there may be.
 */
export const DENY: Script = script(`${WRITING}
local nonce, target, ends, cutoff, reason, most = unpack(ARGV)
local count, ended, old = 0, {}, nil
for name, row in each(ENTRIES) do
  local entry = parse_entry(row)
  if not entry then return { 'malformed' } end
  if entry.second and entry.second <= now then
    ended[#ended + 1] = name
  else
    count = count + 1
    if name == target then old = entry end
  end
end
if old and last_nonce == nonce then return { 'written', last_number, old.ends, old.cutoff } end
if ends ~= '-' and tonumber(ends) <= now then return { 'ended' } end
if not old and count >= tonumber(most) then return { 'full' } end
if old then
  ends = later(ends, old.ends)
  if cutoff ~= '-' then cutoff = later(cutoff, old.cutoff) end
end
local number = next_number()
for _, name in ipairs(ended) do
  redis.call('HDEL', ENTRIES, name)
  redis.call('HDEL', REASONS, name)
end
publish(number, nonce)
redis.call('HSET', REASONS, target, reason)
redis.call('HSET', ENTRIES, target, number .. '|' .. ends .. '|' .. cutoff)
return { 'written', number, ends, cutoff }
`)

/** ARGV: nonce, target, for how many seconds a mark is kept, the most marks. */
export const ALLOW: Script = script(`${WRITING}
local nonce, target, keep_seconds, most = unpack(ARGV)
local others, old = 0, {}
for name, row in each(MARKS) do
  local number, second, listed, writer = string.match(row, '^(%d+)|(%d+)|([01])|(%S+)$')
  if not second then return { 'malformed' } end
  if name == target and writer == nonce then return { 'written', number, listed } end
  if tonumber(second) + tonumber(keep_seconds) < now then
    old[#old + 1] = name
  elseif name ~= target then
    others = others + 1
  end
end
if others >= tonumber(most) then return { 'marks_full' } end
local number = next_number()
for _, name in ipairs(old) do redis.call('HDEL', MARKS, name) end
local listed = redis.call('HEXISTS', ENTRIES, target)
redis.call('HDEL', REASONS, target)
publish(number, nonce)
redis.call('HSET', MARKS, target, table.concat({ number, time[1], listed, nonce }, '|'))
redis.call('HDEL', ENTRIES, target)
return { 'written', number, tostring(listed) }
`)

/** ARGV: instance, version, highest number, silence allowed in ms, name. Removes who was silent longer. */
export const REPORT: Script = script(`${PRELUDE}
local instance, version, highest, silence, name = unpack(ARGV)
for other, row in each(RECEIVERS) do
  if not parse_receiver(row) then redis.call('HDEL', RECEIVERS, other) end
end
local row = { version, highest, silence, string.format('%.0f', now_ms), name }
redis.call('HSET', RECEIVERS, instance, table.concat(row, '|'))
return 1
`)

/** ARGV: instance. */
export const LEAVE: Script = script(`
return redis.call('HDEL', KEYS[5], ARGV[1])
`)

/** Tells name, version and for how many ms it was silent, of each receiver. */
export const RECEIVERS: Script = script(`${PRELUDE}
local receivers = {}
for _, row in each(RECEIVERS) do
  local receiver = parse_receiver(row)
  if receiver then
    receivers[#receivers + 1] =
      { receiver.name, receiver.version, string.format('%.0f', math.max(0, now_ms - receiver.seen)) }
  end
end
return receivers
`)
