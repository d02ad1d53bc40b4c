import type { Request } from 'express'
import {
  announceIdempotency,
  type IdempotencyEvent,
} from '../../base/decision/idempotency-event.js'
import { requestIdOf } from '../request-id.js'

/** Publishes the events of a request. */
export type Tell = (event: Told) => void
/** The event fields that vary within one request. */
type Told = IdempotencyEvent extends infer Event
  ? Event extends IdempotencyEvent
    ? Omit<Event, 'by' | 'caller' | 'requestId'>
    : never
  : never

/** `record` names the key's record, once there is a key. */
export function teller(request: Request, caller: string, record?: string): Tell {
  return (event) =>
    announceIdempotency(() => {
      const requestId = requestIdOf(request)
      return {
        ...event,
        by: 'requireIdempotencyKey',
        caller,
        ...(record !== undefined && { record }),
        ...(requestId !== undefined && { requestId }),
      }
    })
}
