import type { RecordPlace, Seen } from '../../../idempotency/leased/record-keeper.js'
import type { Connection } from '../connection/redis-connection.js'
import { attemptFor, NotConfirmed } from '../connection/redis-deadline.js'
import { LOOK, REPLACE } from './record-scripts.js'
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
