import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IdempotencyEvent } from 'express-service-auth'
import { onTestFinished } from 'vitest'

/** What is told of idempotency keys until the end of the test. */
export function hearIdempotency(): IdempotencyEvent[] {
  const events: IdempotencyEvent[] = []
  const note = (event: unknown): void => void events.push(event as IdempotencyEvent)
  subscribe('express-service-auth:idempotency', note)
  onTestFinished(() => {
    unsubscribe('express-service-auth:idempotency', note)
  })
  return events
}
