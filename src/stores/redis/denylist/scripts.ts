import { type Script, script } from '../connection/redis-call.js'
import { tryScript } from '../connection/rights.js'

/*
 * A denylist is seven keys in one slot:
 *
 * - version: `number nonce`. The nonce is that of the call that wrote it, so that a retry after a lost
 *   reply finds its nonce there.
 * - entries: target -> `number|end|cut-off`, all that receivers need; `-` for none.
 * - reasons: target -> reason, author and time, for operators.
 * - marks: target -> `number|second|whether it was listed|nonce`, written when a target is allowed. A
 *   retry finds its nonce there, and does not remove an entry that was added meanwhile.
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
export const PRELUDE = `
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

/** Key, name, row and a digest of the three, for the version, each entry and each tombstone. */
export const ROWS = `
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
