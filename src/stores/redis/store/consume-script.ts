import { type Script, script } from '../connection/script.js'

/**
 * Records the token unless it is recorded. ARGV: nonce, time to live. The value is the nonce of the
 * attempt: who finds its own has lost the reply to it, and writes once more, so that a connection
 * that has written nothing yet can wait for its replicas. `SET NX GET` would need Redis 7.
 */
export const CONSUME: Script = script(`
local nonce = redis.call('GET', KEYS[1])
if nonce and nonce ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`)

export const isConsumed = (reply: unknown): boolean => reply === 1
