import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type {
  DecisionEvent,
  DenylistEvent,
  IdempotencyEvent,
  KeySetEvent,
  StoreEvent,
} from 'express-service-auth'
import type { MigrationDecision, MigrationProgress } from 'express-service-auth/migration'
import type { PostgresEvent } from 'express-service-auth/postgres'
import { onTestFinished } from 'vitest'

interface Events {
  readonly decision: DecisionEvent
  readonly denylist: DenylistEvent
  readonly idempotency: IdempotencyEvent
  readonly keys: KeySetEvent
  readonly migration: MigrationDecision | MigrationProgress
  readonly postgres: PostgresEvent
  readonly store: StoreEvent
}

/** Calls the function for each event of a channel until the end of the test. */
export function onEvent<Channel extends keyof Events>(
  channel: Channel,
  listen: (event: Events[Channel]) => unknown,
): void {
  const name = `express-service-auth:${channel}`
  const listener = (event: unknown): unknown => listen(event as Events[Channel])
  subscribe(name, listener)
  onTestFinished(() => void unsubscribe(name, listener))
}

/** Collects the events of a channel until the end of the test. */
export function collectEvents<Channel extends keyof Events>(channel: Channel): Events[Channel][] {
  const events: Events[Channel][] = []
  onEvent(channel, (event) => events.push(event))
  return events
}
