import { AsyncResource } from 'node:async_hooks'
import type { ReservationRequest } from '../../../idempotency/leased/idempotency-store.js'
import { type Script, script } from '../connection/redis-call.js'
import { PRELUDE, recordTail, wholeMs } from './idempotency-scripts.js'

/** Undoes reservations that may arrive late. */
interface Compensation<T> {
  /** Undoes `work` immediately, and again for `forMs`, since it may arrive after it was undone. */
  add(id: string, work: T, forMs: number): void
  close(): void
}

/** Between two tries while the store cannot be reached. After each success the pause is twice as long. */
const RETRY_INTERVAL_MS = 250
/** Beyond this number, about 20 MB, the oldest are dropped. */
const MAX_PENDING = 100_000
/** The number at a time, so that a store that has just recovered is not overloaded. */
const BATCH = 200

interface Pending<T> {
  readonly work: T
  /** By `performance.now`, as `dueAt`. */
  readonly until: number
  dueAt: number
  pauseMs: number
}

/**
 * `undo` rejects while the store cannot be reached. The timer never holds the process open, and runs in the
 * async context of this call.
 */
export function createCompensation<T>(undo: (work: T) => Promise<unknown>): Compensation<T> {
  const pending = new Map<string, Pending<T>>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  async function tryOnce(id: string, entry: Pending<T>): Promise<void> {
    const now = performance.now()
    entry.dueAt = Number.POSITIVE_INFINITY
    try {
      await undo(entry.work)
    } catch (error) {
      entry.dueAt = now
      // It goes last, so that the entries of a server that is down do not hold up those of others.
      if (pending.delete(id)) pending.set(id, entry)
      throw error
    }
    if (now >= entry.until) pending.delete(id)
    entry.dueAt = Math.min(now + entry.pauseMs, entry.until)
    entry.pauseMs *= 2
  }

  /** Sends batch after batch, without a pause while the store answers. */
  async function sweep(): Promise<void> {
    const now = performance.now()
    const due = [...pending].filter(([, { dueAt }]) => dueAt <= now)
    for (let start = 0; start < due.length; start += BATCH) {
      const batch = due.slice(start, start + BATCH)
      const tries = await Promise.allSettled(batch.map(([id, entry]) => tryOnce(id, entry)))
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
    add(id, work, forMs) {
      if (isClosed) return
      const [oldest] = pending.keys()
      if (pending.size >= MAX_PENDING && oldest !== undefined) pending.delete(oldest)
      const now = performance.now()
      const entry = { work, until: now + forMs, dueAt: now, pauseMs: RETRY_INTERVAL_MS }
      pending.set(id, entry)
      // Immediately, on the same connection, so that Redis runs it right after the call that it undoes.
      tryOnce(id, entry).then(schedule, schedule)
    },
    close() {
      isClosed = true
      clearTimeout(timer)
      pending.clear()
    },
  }
}

/**
 * Undoes a reservation. ARGV: the record after its fence, time to live, the fence that the reservation was granted
 * (0 for none): such a record stays. Leaves a freed record for a while, which blocks a reservation of this
 * owner that arrives even later, unless the record of the granted run is gone.
 */
export const UNDO_RESERVE: Script = script(`${PRELUDE}
local tail, ttl, granted = unpack(ARGV)
if record == true or (not record and granted ~= '0') then return 0 end
local fence, tombstone = '0', 0
if record then
  local mine = parse_own('1|f|' .. granted .. tail)
  if record.owner ~= mine.owner or record.fence == mine.fence or record.state ~= 'r' then return 0 end
  fence, tombstone = record.fence, tombstone_in(record, mine)
end
local written = write('1|f|' .. fence .. tail, math.max(ttl, tombstone))
if written.err and tombstone > 0 then return written end
if written.err then redis.call('DEL', KEYS[1]) end
return 1
`)

export const undoArguments = (request: ReservationRequest, granted: number): string[] => [
  recordTail(request, request.retentionMs),
  String(wholeMs(request.leaseMs)),
  String(granted),
]
