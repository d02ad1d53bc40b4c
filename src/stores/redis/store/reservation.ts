import { isAscii } from 'node:buffer'
import type {
  Ending,
  Reservation,
  ReservationRequest,
  Run,
} from '../../../idempotency/leased/idempotency-store.js'

// The arguments and replies of the scripts in idempotency-scripts.ts.

/** Whether the reply to `RESERVE` gives the key to the caller. */
export const isReserved = (reply: unknown): boolean =>
  Array.isArray(reply) && String(reply[0]) === 'reserved'

/** Redis accepts only whole milliseconds, and rejects 0. */
const wholeMs = (ms: number): number => Math.max(1, Math.ceil(ms))

/** A running record lives for its lease plus its retention. */
const runningMs = ({ leaseMs, retentionMs }: Pick<Run, 'leaseMs' | 'retentionMs'>): number =>
  wholeMs(leaseMs) + wholeMs(retentionMs)

/** Returns the part of a record between its fence and its result. */
export function behindFence(owned: Owned, retentionMs: number): string {
  // Two lone surrogates would become one character where the strings are joined.
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

/** A string if possible, because ioredis assembles commands with Buffer arguments in pieces. */
export function joined(
  head: string,
  { buffer, byteOffset, byteLength }: Uint8Array,
): string | Buffer {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  const isText = byteLength <= MAX_BYTES_AS_TEXT && isAscii(bytes)
  return isText ? head + bytes.toString('latin1') : Buffer.concat([Buffer.from(head), bytes])
}

/** Returns the state after an ending, and the time to live of the record in milliseconds. */
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

/** Parses the reply to `RESERVE`, whose strings are Buffers. */
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
