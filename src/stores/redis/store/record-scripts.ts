import { type Script, script } from '../connection/script.js'

/** What lies under a key, with its time to live and the server's time, of one moment. */
export const LOOK: Script = script(`
local type = redis.call('TYPE', KEYS[1]).ok
if type == 'none' then return false end
local value = type == 'string' and redis.call('GET', KEYS[1]) or ''
local time = redis.call('TIME')
return { type, value, redis.call('PTTL', KEYS[1]), string.format('%.0f', time[1] * 1000000 + time[2]) }
`)

/**
 * Puts another value where what was seen still lies. ARGV: what was seen (the SHA-1 of a string, or
 * another type), the longest time to live that it may have by now, the new value, its time to live. A
 * renewal changes nothing but the time to live. Who finds its own value has lost the reply to it.
 */
export const REPLACE: Script = script(`
local seen, longest, value, ttl = unpack(ARGV)
local type = redis.call('TYPE', KEYS[1]).ok
if type == 'string' then
  local found = redis.call('GET', KEYS[1])
  if found == value then return 1 end
  type = redis.sha1hex(found)
end
if type ~= seen or redis.call('PTTL', KEYS[1]) > tonumber(longest) then return 0 end
local written = redis.pcall('SET', KEYS[1], value, 'PX', ttl)
if written.err then return written end
return 1
`)
