import { AsyncResource } from 'node:async_hooks'
import type { ReservationRequest } from '../../../idempotency/leased/idempotency-store.js'
import { type Script, script } from '../connection/redis-call.js'
import { PRELUDE, recordTail, wholeMs } from './idempotency-scripts.js'

/** Undoes reservations, with retries until it succeeds. */
export interface Compensation<T> {
  add(id: string, work: T): void
  close(): void
}

const RETRY_INTERVAL_MS = 250
/** Beyond this number, about 20 MB, the oldest are dropped. */
const MAX_PENDING = 100_000
/** The number at a time, so that a store that has just recovered is not overloaded. */
const BATCH = 200

/**
 * `tryOnce` resolves with whether the reservation can no longer take effect, and rejects while the store
 * cannot be reached. The timer never holds the process open, and runs in the async context of this call.
 */
export function createCompensation<T>(tryOnce: (work: T) => Promise<boolean>): Compensation<T> {
  const pending = new Map<string, T>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  async function undo(id: string, work: T): Promise<boolean> {
    const isUndone = await tryOnce(work)
    if (isUndone) pending.delete(id)
    return isUndone
  }

  /** Sends batch after batch, without a pause while the store answers. */
  async function sweep(): Promise<void> {
    const all = [...pending]
    for (let start = 0; start < all.length; start += BATCH) {
      const batch = all.slice(start, start + BATCH)
      const tries = await Promise.allSettled(batch.map(([id, work]) => undo(id, work)))
      if (tries.some(({ status }) => status === 'rejected')) break
    }
    timer = undefined
    schedule()
  }

  const schedule = AsyncResource.bind((): void => {
    if (timer !== undefined || pending.size === 0 || isClosed) return
    timer = setTimeout(() => void sweep(), RETRY_INTERVAL_MS)
    timer.unref()
  })

  return {
    add(id, work) {
      if (isClosed) return
      const [oldest] = pending.keys()
      if (pending.size >= MAX_PENDING && oldest !== undefined) pending.delete(oldest)
      pending.set(id, work)
      // Immediately, on the same connection, so that Redis runs it right after the call that it undoes.
      undo(id, work).then(schedule, schedule)
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      pending.clear()
    },
  }
}

/**
 * Undoes a reservation whose fence is unknown to its caller. ARGV: the record after its fence, time
 * to live. Leaves a freed record for a while, which blocks a reservation of this owner that arrives even
 * later. Undoing again, after a lost reply, never shortens that while. Returns 0 if another run has the key: once
 * it frees the key, such a reservation could still take it.
 */
export const UNDO_RESERVE: Script = script(`${PRELUDE}
if record == true then return 0 end
local behind, ttl = unpack(ARGV)
local fence, tombstone = '0', 0
if record then
  local mine = parse_own('1|f|0' .. behind)
  if record.owner ~= mine.owner then return (record.state == 'd' or record.state == 'u') and 1 or 0 end
  if record.state == 'f' then
    return redis.call('PEXPIRE', KEYS[1], math.max(ttl, redis.call('PTTL', KEYS[1])))
  end
  fence, tombstone = record.fence, tombstone_in(record, mine)
end
local written = write('1|f|' .. fence .. behind, math.max(ttl, tombstone))
if written.err and tombstone > 0 then return written end
if written.err then redis.call('DEL', KEYS[1]) end
return 1
`)

export const undoArguments = (request: ReservationRequest): string[] => [
  recordTail(request, request.retentionMs),
  String(wholeMs(request.leaseMs)),
]
