import { type Script, script } from './script.js'

/**
 * Records the token unless it is recorded. The value is the nonce of the attempt: who finds its own
 * has lost the reply to it. `SET NX GET` would do the same from Redis 7 on.
 */
export const CONSUME: Script = script(`
local nonce = redis.call('GET', KEYS[1])
if nonce then return nonce == ARGV[1] and 1 or 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`)
