import type { DenylistEvent, IdempotencyEvent, KeySetEvent } from 'express-service-auth'
import type { Outcome, RoomEvent } from '../../protocol.js'

type Level = RoomEvent['level']

/** What the event says of its request; nothing if it is the end of a run. */
export function wordOf(event: IdempotencyEvent): Exclude<Outcome, 'failed'> | undefined {
  if (event.outcome !== 'accepted') return event.outcome
  return event.reason === 'replayed' ? 'replayed' : undefined
}

const LEVELS: Readonly<Record<KeySetEvent['type'] | DenylistEvent['type'], Level>> = {
  fetched: 'info',
  not_modified: 'info',
  failed: 'error',
  key_skipped: 'warn',
  budget_exhausted: 'warn',
  expired: 'error',
  changed: 'info',
  stale: 'error',
  recovered: 'info',
  regressed: 'error',
}

type Accepted = Extract<IdempotencyEvent, { outcome: 'accepted' }>

/** Any other accepted write is `info`. */
const LEVELS_OF_WRITES: Readonly<Partial<Record<Accepted['reason'], Level>>> = {
  result_too_large: 'warn',
  abandoned: 'warn',
  key_lost: 'warn',
  conflict: 'warn',
  transaction_unused: 'warn',
  key_missing: 'warn',
  result_lost: 'error',
  uncoupled: 'error',
  transaction_used_late: 'error',
  answer_unsent: 'error',
}

/** The level at which `logDecisions` logs the event; `info` if it does not log it. */
export function levelOf(event: RoomEvent['event']): Level {
  if ('type' in event) return LEVELS[event.type]
  if (event.outcome !== 'accepted') return event.outcome === 'refused' ? 'warn' : 'error'
  return 'reason' in event ? (LEVELS_OF_WRITES[event.reason] ?? 'info') : 'info'
}
