import type {
  DecisionEvent,
  DenylistEvent,
  IdempotencyEvent,
  KeySetEvent,
} from 'express-service-auth'
import type { ReceiverName } from './names.js'

/** What a receiver has published on a channel of the package. */
export interface RoomEvent {
  /** Grows by one with each event, those left out included. */
  readonly number: number
  readonly at: number
  readonly receiver: ReceiverName | 'story'
  /** The call of this room that it belongs to. */
  readonly call?: string
  readonly channel: 'decision' | 'idempotency' | 'keys' | 'denylist'
  /** At which `logDecisions` logs it; `info` if it does not log it. */
  readonly level: 'info' | 'warn' | 'error'
  /** The reason, or the type of the change. */
  readonly title: string
  readonly event: DecisionEvent | IdempotencyEvent | KeySetEvent | DenylistEvent
}
