import type { RecordPlace, Seen } from '../../../idempotency/leased/record-keeper.js'
import type { Connection } from '../connection/redis-connection.js'
import { attemptFor, NotConfirmed } from '../connection/redis-deadline.js'
import { type Script, script } from '../connection/script.js'
import { type KeptValue, parseRecord, readLook, textOf, tokenOf } from './record-text.js'

interface SeenValue extends Seen {
  readonly kept: KeptValue
}

interface PlaceOptions {
  readonly timeoutMs: number
  /** The name of a record's key in Redis. */
  keyOf(record: string): string
}

const ANY_TTL_MS = Number.MAX_SAFE_INTEGER

/** The records that a connection leads to. */
export function recordPlace(
  connection: Connection,
  { timeoutMs, keyOf }: PlaceOptions,
): RecordPlace<SeenValue> {
  return {
    async look(record) {
      const call = { script: LOOK, key: keyOf(record), args: [] }
      const reply = await connection.run(call).catch((error) => {
        // Whether it was asked does not matter: nothing was written.
        throw error instanceof NotConfirmed ? notWritten(error) : error
      })
      if (reply === null) return undefined
      const kept = readLook(reply)
      // All times of the record count from when it was looked at.
      return { kept, record: parseRecord(kept), now: 0 }
    },
    async replace(record, seen, next) {
      const args = [
        tokenOf(seen.kept),
        longestTtl(seen),
        textOf(next),
        String(Math.ceil(next.expiresAt)),
      ]
      const call = { script: REPLACE, key: keyOf(record), args }
      const attempt = attemptFor(timeoutMs)
      const reply = await connection.run(call, attempt).catch((error: Error) => {
        throw attempt.isRepeated ? unknownWhether(error.message) : error
      })
      // What the first try has written may have been followed by another's write.
      if (reply !== 1 && attempt.isRepeated) throw unknownWhether('the record has changed since')
      return reply === 1
    },
  }
}

/** The longest time to live that the record can have unless its run has come back to life. */
function longestTtl({ kept, record }: SeenValue): string {
  if (kept.ttlMs < 0) return String(kept.ttlMs)
  const hasLease = record.state === 'running' || record.state === 'unstored'
  return String(hasLease ? record.retentionMs : ANY_TTL_MS)
}

const notWritten = ({ message, code }: NotConfirmed): NotConfirmed =>
  new NotConfirmed(message, false, code)

const unknownWhether = (why: string): NotConfirmed =>
  new NotConfirmed(`the reply was lost, and it is not known whether it was written: ${why}`, true)

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
