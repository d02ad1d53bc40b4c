import type { DenylistEvent, IdempotencyEvent, KeySetEvent } from 'express-service-auth'
import type { Outcome, RoomEvent } from '../../protocol.js'

type Level = RoomEvent['level']

/** What the event says of its request; nothing where it tells how a run has ended. */
export function wordOf(event: IdempotencyEvent): Exclude<Outcome, 'failed'> | undefined {
  if (event.outcome !== 'accepted') return event.outcome
  return event.reason === 'replayed' ? 'replayed' : undefined
}

const CHANGES: readonly string[] = ['released', 'result_too_large', 'transaction_unused']
const ACCEPTED: readonly string[] = ['reserved', 'replayed', 'result_kept', 'refusal_kept']

export function levelOfIdempotency({ outcome, reason }: IdempotencyEvent): Level {
  if (outcome === 'refused') return 'refused'
  if (outcome === 'undecided') return 'fault'
  if (ACCEPTED.includes(reason)) return 'accepted'
  return CHANGES.includes(reason) ? 'change' : 'fault'
}

export const levelOfKeys = ({ type }: KeySetEvent): Level =>
  type === 'failed' || type === 'expired' || type === 'key_skipped' ? 'fault' : 'change'

export const levelOfDenylist = ({ type }: DenylistEvent): Level =>
  type === 'changed' || type === 'recovered' ? 'change' : 'fault'
