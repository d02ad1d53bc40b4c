import { AsyncResource } from 'node:async_hooks'
import type { ReservationRequest } from '../../../idempotency/leased/idempotency-store.js'
import { type Script, script } from '../connection/client.js'
import { PRELUDE, recordTail, wholeMs } from './idempotency-scripts.js'

/** Undoes reservations that may reach Redis late. */
interface Compensation<T> {
  /** Undoes `work` now, and again until `forMs` have passed, because `work` may reach Redis after the first undo. */
  add(work: T, forMs: number): void
  close(): void
}

/** When to undo, as parts of the time. */
const UNDO_AT = [0, 1 / 16, 1 / 4, 1] as const
/** The pause after a failed undo. It doubles with each further one, up to the longest. */
const RETRY_MS = 250
const MAX_RETRY_MS = 4000
/** With so many in progress, about 50 MB, a new one is undone only once. */
const MAX_PENDING = 50_000

/**
 * `undo` rejects while the store cannot be reached, and is then repeated until it succeeds. The timers never hold
 * the process open, and everything runs in the async context of this call.
 */
export function createCompensation<T>(undo: (work: T) => Promise<unknown>): Compensation<T> {
  let pending = 0
  let isClosed = false

  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => setTimeout(resolve, ms).unref())

  async function undoUntilDone(work: T, forMs: number): Promise<void> {
    const maxPauseMs = Math.max(RETRY_MS, Math.min(MAX_RETRY_MS, forMs / 4))
    for (let pauseMs = RETRY_MS; !isClosed; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
      try {
        await undo(work)
        return
      } catch {
        await pause(pauseMs)
      }
    }
  }

  async function undoRepeatedly(work: T, forMs: number): Promise<void> {
    const startedAt = performance.now()
    for (const part of UNDO_AT) {
      const dueInMs = startedAt + part * forMs - performance.now()
      // The timer may fire slightly early, and nothing is undone after the last time.
      if (part > 0) await pause(Math.max(0, Math.ceil(dueInMs) + 1))
      const begunAt = performance.now()
      await undoUntilDone(work, forMs)
      if (isClosed || begunAt - startedAt >= forMs) return
    }
  }

  return {
    add: AsyncResource.bind((work, forMs) => {
      if (isClosed) return
      if (pending >= MAX_PENDING) return void undo(work).catch(() => {})
      pending += 1
      // Sent now, on the connection of the reservation, so that Redis runs the undo right after it.
      void undoRepeatedly(work, forMs).finally(() => (pending -= 1))
    }),
    close() {
      isClosed = true
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
