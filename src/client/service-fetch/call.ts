import type { Limit } from '../../base/deadline.js'
import type { AttemptReport, CallReport } from './call-report.js'
import type { OutgoingRequest } from './outgoing-request.js'
import type { RetryContext } from './retry-decision.js'
import { ServiceCallError, type ServiceCallErrorCode } from './service-call-error.js'
import type { FetchSettings } from './service-fetch-options.js'

/** A call in progress. */
export interface Call {
  readonly settings: FetchSettings
  readonly request: OutgoingRequest
  /** A time of `performance.now()`, which clock changes do not affect. */
  readonly startedAt: number
  /** The finished attempts. */
  readonly attempts: AttemptReport[]
  /** The wait before the current attempt. */
  waitedMs: number
  hasChangedToken: boolean
}

export function startCall(settings: FetchSettings, request: OutgoingRequest): Call {
  const startedAt = performance.now()
  return { settings, request, startedAt, attempts: [], waitedMs: 0, hasChangedToken: false }
}

export const leftMs = ({ settings, startedAt }: Call): number =>
  startedAt + settings.deadlineMs - performance.now()

/** The error of a step of the call that ran out of time. */
export const DEADLINE_EXCEEDED: Error = new Error('the time is up')
const deadlineExceeded = (): Error => DEADLINE_EXCEEDED

/** The limits of one step of the call. */
export const limitOf = ({ request }: Call, timeoutMs: number): Limit => ({
  timeoutMs,
  timeoutError: deadlineExceeded,
  signal: request.signal,
})

export function recordAttempt(call: Call, how: Omit<AttemptReport, 'waitedMs'>): void {
  call.attempts.push(Object.freeze({ ...how, waitedMs: call.waitedMs }))
}

export function retryContextOf(call: Call): RetryContext {
  const { settings, request } = call
  return {
    isRepeatable: !request.isWrite || request.idempotencyKey !== undefined,
    attempts: call.attempts.length,
    maxAttempts: settings.maxAttempts,
    hasChangedToken: call.hasChangedToken,
    leftMs: leftMs(call),
    random: Math.random(),
  }
}

export function reportOn(call: Call, replayed = false): CallReport {
  const { idempotencyKey } = call.request
  return Object.freeze({
    attempts: Object.freeze([...call.attempts]),
    replayed,
    totalMs: performance.now() - call.startedAt,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  })
}

export const callError = (
  call: Call,
  code: ServiceCallErrorCode,
  cause?: unknown,
): ServiceCallError =>
  new ServiceCallError(code, reportOn(call), cause === undefined ? undefined : { cause })
