import { tryScript } from '../connection/check-nodes.js'
import { type Script, script } from '../connection/client.js'

/** A denylist script with its arguments, and how long it may be tried. */
export interface ListCall {
  readonly script: Script
  readonly args?: readonly string[]
  readonly timeoutMs: number
}

/** Runs a script on the keys of the list. The strings in the reply are no Buffers. @throws NotConfirmed */
export type RunOnList = (call: ListCall) => Promise<unknown>

/*
 * A denylist is five keys in one slot:
 *
 * - version: `number nonce`. The nonce is that of the call that wrote it, so that a retry after a lost
 *   reply finds its nonce there.
 * - entries: target -> `number|end|cut-off`, all that receivers need; `-` for none.
 * - reasons: target -> reason, author and time, for operators.
 * - marks: target -> `number|second|whether it was listed|nonce`, written when a target is allowed. A
 *   retry finds its nonce there, and does not remove an entry that was added meanwhile.
 * - receivers: instance -> `version|highest number|silence allowed|seen|name`, times in ms.
 *
 * A new number is above the last one, not below the server's clock in µs, and above all numbers that
 * receivers have seen: after a failover that lost writes, a server must not write numbers below theirs.
 *
 * A write reads its own target, and looks at 20 random rows for some that have ended: so ended rows stay
 * few, and a long list costs a write nothing. It looks at all rows only where the list seems to be full.
 *
 * Redis does not undo a script that fails midway. So commands that may fail (for a missing permission or
 * a key of another type) come first, and the entry is written or removed last.
 */
const PRELUDE = `
local VERSION, ENTRIES, REASONS, MARKS, RECEIVERS = unpack(KEYS)
local MOST = 2^53 - 2
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local now_ms = math.floor(now * 1000)
local function pairs_of(rows)
  local at = -1
  return function()
    at = at + 2
    return rows[at], rows[at + 1]
  end
end
local function each(key) return pairs_of(redis.call('HGETALL', key)) end
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

/** Returns version and time. */
export const POLL: Script = script(`
local time = redis.call('TIME')
return { redis.call('GET', KEYS[1]), time[1], time[2] }
`)

/** Returns version, time, entries and tombstones. */
export const READ: Script = script(`
local time = redis.call('TIME')
return { redis.call('GET', KEYS[1]), time[1], time[2],
  redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[4]) }
`)

/** Returns what `READ` returns, and the reasons. */
export const READ_WITH_REASONS: Script = script(`
local time = redis.call('TIME')
return { redis.call('GET', KEYS[1]), time[1], time[2],
  redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[4]), redis.call('HGETALL', KEYS[3]) }
`)

/**
 * ARGV: instance, version, highest number, silence allowed in ms, name. Removes receivers that have been
 * silent for longer.
 */
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

/** Runs each command that a receiver's scripts use. No instance is named `check`; the field is removed at once. */
export const TRY_RECEIVER: Script = tryScript(`
  { 'TIME' }, { 'GET', KEYS[1] }, { 'HGETALL', KEYS[2] },
  { 'HSET', KEYS[5], 'check', '' }, { 'HDEL', KEYS[5], 'check' },
`)

/** Returns the name, the version and the ms since the last report of each receiver. */
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
local function remove_ended(rows, hashes, second_of)
  for name, row in pairs_of(rows) do
    local second = second_of(row)
    if second and second <= now then
      for _, hash in ipairs(hashes) do redis.call('HDEL', hash, name) end
    end
  end
end
local function remove_some_ended(hashes, second_of)
  remove_ended(redis.call('HRANDFIELD', hashes[1], 20, 'WITHVALUES'), hashes, second_of)
end
local function has_room(added, most, hashes, second_of)
  if redis.call('HLEN', hashes[1]) + added <= most then return true end
  remove_ended(redis.call('HGETALL', hashes[1]), hashes, second_of)
  return redis.call('HLEN', hashes[1]) + added <= most
end
`

/**
 * ARGV: nonce, maximum number of entries, and for each entry target, end, cut-off, reason. Writes all or
 * none. For two entries with the same target, the later end and the later cut-off apply, and the reason
 * changes only if one of them does. An entry whose row in Redis is damaged is not guessed: `damaged`.
 */
export const DENY: Script = script(`${WRITING}
local nonce, most = ARGV[1], tonumber(ARGV[2])
local hashes = { ENTRIES, REASONS }
local function second_of(row)
  local entry = parse_entry(row)
  return entry and entry.second
end
local planned, added, is_repeated = {}, 0, last_nonce == nonce
local function stored(target)
  local row = redis.call('HGET', ENTRIES, target)
  if not row then return nil end
  local entry = parse_entry(row)
  if not entry then return nil, true end
  if entry.second and entry.second <= now then return nil end
  entry.reason = redis.call('HGET', REASONS, target) or ''
  return entry
end
for at = 3, #ARGV, 4 do
  local target, ends, cutoff, reason = unpack(ARGV, at, at + 3)
  local index = tostring((at - 3) / 4)
  local old, is_damaged = planned[target], false
  if not old then old, is_damaged = stored(target) end
  if is_damaged then return { 'damaged', index } end
  is_repeated = is_repeated and old ~= nil
  if ends ~= '-' and tonumber(ends) <= now and not is_repeated then return { 'ended', index } end
  local entry = { ends = ends, cutoff = cutoff, reason = reason }
  if old then
    entry.ends = later(old.ends, ends)
    if cutoff ~= '-' then entry.cutoff = later(old.cutoff, cutoff) end
    if entry.ends == old.ends and entry.cutoff == old.cutoff then entry.reason = old.reason end
  else
    added = added + 1
  end
  planned[target] = entry
end
if added > 0 and not has_room(added, most, hashes, second_of) then return { 'full' } end
local number = is_repeated and last_number or next_number()
if not is_repeated then
  remove_some_ended(hashes, second_of)
  publish(number, nonce)
end
local answer = { 'written', number }
for at = 3, #ARGV, 4 do
  local target = ARGV[at]
  local entry = planned[target]
  if not is_repeated then
    if entry.reason ~= '' then redis.call('HSET', REASONS, target, entry.reason) end
    redis.call('HSET', ENTRIES, target, number .. '|' .. entry.ends .. '|' .. entry.cutoff)
  end
  for _, text in ipairs({ entry.ends, entry.cutoff, entry.reason }) do answer[#answer + 1] = text end
end
return answer
`)

/** ARGV: nonce, target, seconds for which tombstones are stored, maximum number of tombstones. */
export const ALLOW: Script = script(`${WRITING}
local nonce, target, keep_seconds, most = unpack(ARGV)
local hashes = { MARKS }
local function second_of(row)
  local second = string.match(row, '^%d+|(%d+)|')
  return second and second + keep_seconds
end
local tombstone = redis.call('HGET', MARKS, target)
if tombstone then
  local number, listed, writer = string.match(tombstone, '^(%d+)|%d+|([01])|(%S+)$')
  if writer == nonce then return { 'written', number, listed } end
end
local added = tombstone and 0 or 1
if added > 0 and not has_room(added, tonumber(most), hashes, second_of) then return { 'marks_full' } end
local number = next_number()
local listed = redis.call('HEXISTS', ENTRIES, target)
redis.call('HDEL', REASONS, target)
remove_some_ended(hashes, second_of)
publish(number, nonce)
redis.call('HSET', MARKS, target, table.concat({ number, time[1], listed, nonce }, '|'))
redis.call('HDEL', ENTRIES, target)
return { 'written', number, tostring(listed) }
`)
