import { type Script, script } from '../connection/redis-call.js'
import { PRELUDE, ROWS } from './scripts.js'

// The scripts that change the list; scripts.ts describes its keys.

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
 * ARGV: nonce, target, seconds for which tombstones are stored, maximum number of tombstones. Removes up to 100
 * older tombstones.
 */
export const ALLOW: Script = script(`${WRITING}
local nonce, target, keep_seconds, most = unpack(ARGV)
if not is_indexed() then return { 'unindexed' } end
local others = count_live(MARK_ENDS)
local tombstone = redis.call('HGET', MARKS, target)
if tombstone then
  local number, second, listed, writer = string.match(tombstone, '^(%d+)|(%d+)|([01])|(%S+)$')
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
 * ARGV: seconds for which tombstones are stored, number of checked entries, number of checked tombstones. Rebuilds
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
