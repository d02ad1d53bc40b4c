import { AsyncResource } from 'node:async_hooks'
import type { ReservationRequest } from '../../../idempotency/leased/idempotency-store.js'
import { type Script, script } from '../connection/redis-call.js'
import { PRELUDE, recordTail, wholeMs } from './idempotency-scripts.js'

/** Undoes reservations that may reach Redis late. */
interface Compensation<T> {
  /** Undoes `work` now, and again for `forMs`, because `work` may reach Redis after the first undo. */
  add(id: string, work: T, forMs: number): void
  close(): void
}

/** The pause after a failed undo and after the first successful one. Each further success doubles it. */
const RETRY_INTERVAL_MS = 250
/** With so many entries, about 20 MB, a new one replaces the oldest. */
const MAX_PENDING = 100_000
/** The number of concurrent undos, so that a store that has just recovered is not overloaded. */
const BATCH = 200

interface Pending<T> {
  readonly work: T
  /** The time of the last undo, by `performance.now`, like `dueAt`. */
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
      // Moved to the end: entries of a cluster node that is down must not delay those of other nodes.
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
      // Sent now, on the connection of the reservation, so that Redis runs the undo right after it.
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
 * Frees a key that a late attempt of a reservation may have taken. ARGV: the record after its fence, time to
 * live, the fence that the caller was granted (0 for none). Keeps a record with the granted fence. The freed record
 * blocks attempts that arrive even later; none is written if the caller was granted a run whose record is gone.
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
