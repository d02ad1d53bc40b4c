import { isAscii } from 'node:buffer'
import type {
  Ending,
  Reservation,
  ReservationRequest,
  Run,
} from '../../../idempotency/leased/idempotency-store.js'

// What goes into the scripts of idempotency-scripts.ts, and what comes out of them.

/** Whether the reply to `RESERVE` says that the key is the caller's. */
export const isReserved = (reply: unknown): boolean =>
  Array.isArray(reply) && String(reply[0]) === 'reserved'

/** Redis takes whole milliseconds, and none as an error. */
const wholeMs = (ms: number): number => Math.max(1, Math.ceil(ms))

/** A running record lives for its lease and its retention. */
const runningMs = ({ leaseMs, retentionMs }: Pick<Run, 'leaseMs' | 'retentionMs'>): number =>
  wholeMs(leaseMs) + wholeMs(retentionMs)

/** A record from behind its fence to its result. */
export function behindFence(owned: Owned, retentionMs: number): string {
  // Halves of a character would become one where they meet.
  const owner = owned.owner.toWellFormed()
  const fingerprint = owned.fingerprint.toWellFormed()
  const sizes = `${Buffer.byteLength(owner)}|${Buffer.byteLength(fingerprint)}`
  return `|${wholeMs(retentionMs)}|${sizes}|${owner}${fingerprint}`
}

type Owned = Pick<Run, 'owner' | 'fingerprint'>

export const reserveArguments = (request: ReservationRequest): string[] => [
  behindFence(request, request.retentionMs),
  String(runningMs(request)),
  request.rerunAbandoned ? '1' : '0',
]

export const renewArguments = (run: Run): string[] => [
  `1|r|${run.fence}${behindFence(run, run.retentionMs)}`,
  String(runningMs(run)),
]

export function settleArguments(run: Run, ending: Ending): (string | Buffer)[] {
  const [state, ttlMs] = endState(run, ending.type)
  const head = `1|${state}|${run.fence}${behindFence(run, run.retentionMs)}`
  const record = ending.type === 'finished' ? joined(head, ending.result) : head
  return [record, String(ttlMs)]
}

const MAX_BYTES_AS_TEXT = 4096

/** As text where it can be: ioredis builds a command that has an argument of bytes from pieces. */
export function joined(
  head: string,
  { buffer, byteOffset, byteLength }: Uint8Array,
): string | Buffer {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  const isText = byteLength <= MAX_BYTES_AS_TEXT && isAscii(bytes)
  return isText ? head + bytes.toString('latin1') : Buffer.concat([Buffer.from(head), bytes])
}

/** The state that an ending leaves, and how many milliseconds the record lives in it. */
function endState(run: Run, type: Ending['type']): [string, number] {
  switch (type) {
    case 'finished':
      return ['d', wholeMs(run.retentionMs)]
    case 'streaming':
      return ['u', runningMs(run)]
    case 'streamed':
      return ['u', wholeMs(run.retentionMs)]
    case 'abandoned':
      return ['r', wholeMs(run.retentionMs)]
    case 'released':
      return ['f', wholeMs(run.leaseMs)]
  }
}

export const takeBackArguments = (request: ReservationRequest): string[] => [
  behindFence(request, request.retentionMs),
  String(wholeMs(request.leaseMs)),
]

/** Reads the reply to `RESERVE`, whose strings come as bytes. */
export function readReservation(reply: unknown): Reservation {
  const [outcome, detail] = Array.isArray(reply) ? reply : []
  switch (String(outcome)) {
    case 'reserved':
      return { outcome: 'reserved', fence: Number(detail) }
    case 'running':
      return { outcome: 'running', leaseLeftMs: Number(detail) }
    case 'finished':
      return { outcome: 'finished', result: detail }
    case 'mismatch':
    case 'result_not_stored':
    case 'abandoned':
    case 'unreadable':
      return { outcome: String(outcome) as 'mismatch' }
    default:
      throw new TypeError('the reservation script gave a reply that it cannot give')
  }
}
