import { type Script, script } from '../connection/script.js'

/*
 * A denylist is seven keys in one slot:
 *
 * - version: `number nonce`. The nonce is that of the call that wrote it, so that a retry after a lost
 *   reply finds its own.
 * - entries: target -> `number|end|cut-off`, all that receivers need; `-` for none.
 * - reasons: target -> reason, author and time, for operators.
 * - marks: target -> `number|second|whether it was listed|nonce`, written when a target is allowed. A
 *   retry finds its own nonce, and does not remove an entry that was added meanwhile.
 * - receivers: instance -> `version|highest number|silence allowed|seen|name`, times in ms.
 * - entry-ends, mark-ends: sorted sets of all targets in entries and in marks, by the second at which
 *   the row may be removed. A write finds the ended rows in them, and never reads all rows.
 *
 * A new number is above the last one, not below the server's clock in µs, and above all numbers that
 * receivers have seen: after a failover that lost writes, a server must not write numbers below theirs.
 *
 * Redis does not undo a script that fails midway. So commands that may fail (for a missing permission or
 * a key of another type) come first, and the entry is written or removed last. If a script fails, or
 * another program adds or removes a row, the size of an index differs from that of its hash. A write then
 * returns `unindexed`; the caller checks every row and has the indexes rebuilt.
 */
const PRELUDE = `
local VERSION, ENTRIES, REASONS, MARKS, RECEIVERS, ENTRY_ENDS, MARK_ENDS = unpack(KEYS)
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
local function is_indexed()
  return redis.call('HLEN', ENTRIES) == redis.call('ZCARD', ENTRY_ENDS)
    and redis.call('HLEN', MARKS) == redis.call('ZCARD', MARK_ENDS)
end
local now_text = string.format('%.6f', now)
local function count_live(index)
  return redis.call('ZCOUNT', index, '(' .. now_text, '+inf')
end
local function remove_ended(index, ...)
  local ended = redis.call('ZRANGEBYSCORE', index, '-inf', now_text, 'LIMIT', 0, 100)
  for _, name in ipairs(ended) do
    for _, hash in ipairs({ ... }) do redis.call('HDEL', hash, name) end
    redis.call('ZREM', index, name)
  end
end
local function second_of(ends)
  return ends == '-' and '+inf' or ends
end
`

/** Returns version and time. */
export const POLL: Script = script(`
local time = redis.call('TIME')
return { redis.call('GET', KEYS[1]), time[1], time[2] }
`)

/** Returns version, time, entries and marks. */
export const READ: Script = script(`
local time = redis.call('TIME')
return { redis.call('GET', KEYS[1]), time[1], time[2],
  redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[4]) }
`)

/** Returns the same as `READ`, and the reasons. */
export const READ_WITH_REASONS: Script = script(`
local time = redis.call('TIME')
return { redis.call('GET', KEYS[1]), time[1], time[2],
  redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[4]), redis.call('HGETALL', KEYS[3]) }
`)

/**
 * ARGV: nonce, maximum number of entries, and for each entry target, end, cut-off, reason. Writes all or
 * none. For two entries with the same target, the later end and the later cut-off apply, and the reason
 * changes only if one of them does. Removes up to 100 entries that have ended.
 */
export const DENY: Script = script(`${WRITING}
local nonce, most = ARGV[1], tonumber(ARGV[2])
if not is_indexed() then return { 'unindexed' } end
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
  local old, is_damaged = planned[target], false
  if not old then old, is_damaged = stored(target) end
  if is_damaged then return { 'unindexed' } end
  is_repeated = is_repeated and old ~= nil
  if ends ~= '-' and tonumber(ends) <= now and not is_repeated then
    return { 'ended', tostring((at - 3) / 4) }
  end
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
if added > 0 and count_live(ENTRY_ENDS) + added > most then return { 'full' } end
local number = is_repeated and last_number or next_number()
if not is_repeated then
  remove_ended(ENTRY_ENDS, ENTRIES, REASONS)
  publish(number, nonce)
end
local answer = { 'written', number }
for at = 3, #ARGV, 4 do
  local target = ARGV[at]
  local entry = planned[target]
  if not is_repeated then
    redis.call('ZADD', ENTRY_ENDS, second_of(entry.ends), target)
    if entry.reason ~= '' then redis.call('HSET', REASONS, target, entry.reason) end
    redis.call('HSET', ENTRIES, target, number .. '|' .. entry.ends .. '|' .. entry.cutoff)
  end
  for _, text in ipairs({ entry.ends, entry.cutoff, entry.reason }) do answer[#answer + 1] = text end
end
return answer
`)

/**
 * ARGV: nonce, target, seconds for which marks are stored, maximum number of marks. Removes up to 100
 * older marks.
 */
export const ALLOW: Script = script(`${WRITING}
local nonce, target, keep_seconds, most = unpack(ARGV)
if not is_indexed() then return { 'unindexed' } end
local others = count_live(MARK_ENDS)
local mark = redis.call('HGET', MARKS, target)
if mark then
  local number, second, listed, writer = string.match(mark, '^(%d+)|(%d+)|([01])|(%S+)$')
  if not second then return { 'unindexed' } end
  if writer == nonce then return { 'written', number, listed } end
  if tonumber(second) + tonumber(keep_seconds) > now then others = others - 1 end
end
if others >= tonumber(most) then return { 'marks_full' } end
local number = next_number()
local listed = redis.call('HEXISTS', ENTRIES, target)
redis.call('HDEL', REASONS, target)
remove_ended(MARK_ENDS, MARKS)
publish(number, nonce)
redis.call('ZADD', MARK_ENDS, time[1] + keep_seconds, target)
redis.call('HSET', MARKS, target, table.concat({ number, time[1], listed, nonce }, '|'))
redis.call('ZREM', ENTRY_ENDS, target)
redis.call('HDEL', ENTRIES, target)
return { 'written', number, tostring(listed) }
`)

/** Key, name, row and a digest of the three, for the version, each entry and each mark. */
const ROWS = `
local function row_of(key, name, row)
  return { key, name, row, redis.sha1hex(key .. '\\0' .. name .. '\\0' .. row) }
end
local function all_rows()
  local rows = {}
  local version = redis.call('GET', VERSION)
  if version then rows[1] = row_of('version', '', version) end
  for name, row in each(ENTRIES) do rows[#rows + 1] = row_of('entries', name, row) end
  for name, row in each(MARKS) do rows[#rows + 1] = row_of('marks', name, row) end
  return rows
end
`

/** Reads the whole list and returns every row in the form of `ROWS`. */
export const READ_ROWS: Script = script(`${PRELUDE}${ROWS}
return all_rows()
`)

/** ARGV: nonce, digests. Removes the rows with these digests and writes a new version. */
export const REMOVE_ROWS: Script = script(`${WRITING}${ROWS}
local is_named = {}
for at = 2, #ARGV do is_named[ARGV[at]] = true end
local number = next_number()
publish(number, ARGV[1])
local removed = 0
for _, row in ipairs(all_rows()) do
  local key, name = row[1], row[2]
  if is_named[row[4]] then
    removed = removed + 1
    if key == 'entries' then redis.call('HDEL', REASONS, name) end
    if key ~= 'version' then redis.call('HDEL', key == 'entries' and ENTRIES or MARKS, name) end
  end
end
return { 'written', number, tostring(removed) }
`)

/**
 * ARGV: seconds for which marks are stored, number of checked entries, number of checked marks. Rebuilds
 * the indexes, unless the number of rows has changed.
 */
export const INDEX: Script = script(`${WRITING}
local keep_seconds, entries, marks = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('HLEN', ENTRIES) ~= entries or redis.call('HLEN', MARKS) ~= marks then return 0 end
redis.call('DEL', ENTRY_ENDS, MARK_ENDS)
for name, row in each(ENTRIES) do
  local entry = parse_entry(row)
  if entry then redis.call('ZADD', ENTRY_ENDS, second_of(entry.ends), name) end
end
for name, row in each(MARKS) do
  local second = string.match(row, '^%d+|(%d+)|')
  if second then redis.call('ZADD', MARK_ENDS, second + keep_seconds, name) end
end
return 1
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
