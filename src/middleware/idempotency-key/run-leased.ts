import { randomUUID } from 'node:crypto'
import { laterInThisContext, type RunEnd } from '../../base/decision/idempotency-event.js'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { callStore } from '../../base/decision/store-call.js'
import { captureResponse } from '../../idempotency/buffered-response/buffer-response.js'
import type { CaptureObserver } from '../../idempotency/buffered-response/send-buffered.js'
import { encodeResult } from '../../idempotency/buffered-response/stored-result.js'
import type { IdempotencyContext } from '../../idempotency/idempotency-context.js'
import {
  type Ending,
  grantedRun,
  type Reservation,
  type Run,
} from '../../idempotency/leased/idempotency-store.js'
import { keepLease } from '../../idempotency/leased/lease.js'
import { refuse } from '../refusals.js'
import type { LeasedSettings } from './idempotency-options.js'
import {
  type Attempt,
  answerUnsent,
  outcomeUnknown,
  replay,
  turnDown,
} from './idempotent-exchange.js'

/** Reserves the key, and runs the handler under a lease of it. */
export async function runLeased(attempt: Attempt, settings: LeasedSettings): Promise<void> {
  const { state, request, response, next, tell, record: key, fingerprint } = attempt
  const { store, retentionMs, leaseMs, rerunAbandoned } = settings
  const owner = randomUUID()
  const reservation = { key, owner, fingerprint, leaseMs, retentionMs, rerunAbandoned }
  const reservedAt = performance.now()
  let reply: Reservation
  try {
    reply = await callStore('reserve', () => store.reserve(reservation))
  } catch {
    refuse(response, 'store_unavailable')
    tell({ outcome: 'undecided', reason: 'store_unavailable', status: 503 })
    return
  }
  const run = grantedRun(reservation, reply)
  if (run === undefined) {
    answerReserved(attempt, reply)
    return
  }
  // Something else (a timeout, say) has answered while the key was being reserved.
  if (response.headersSent) {
    await release(settings, run)
    throw wrongWiring('the response had begun before the key was reserved')
  }
  const context = beginRun(attempt, settings, { run, reservedAt })
  state.reservation = { context, store }
  request.idempotency = context
  tell({ outcome: 'accepted', reason: 'reserved', fence: run.fence })
  next()
}

/** Answers a request whose key another run has, or had. */
function answerReserved(attempt: Attempt, reservation: Reservation): void {
  switch (reservation.outcome) {
    case 'running':
      turnDown(attempt, 'request_in_progress', reservation.leaseLeftMs)
      return
    case 'finished':
      replay(attempt, reservation.result)
      return
    case 'mismatch':
      turnDown(attempt, 'key_reused')
      return
    case 'result_not_stored':
      turnDown(attempt, 'result_not_stored')
      return
    case 'abandoned':
    case 'unreadable':
      outcomeUnknown(attempt, reservation.outcome)
  }
}

async function release({ store }: LeasedSettings, run: Run): Promise<void> {
  try {
    await callStore('settle', () => store.settle(run, { type: 'released' }))
  } catch {
    // Its lease will run out.
  }
}

interface Granted {
  readonly run: Run
  /** When the reservation was requested, from `performance.now`. */
  readonly reservedAt: number
}

/** Renews the lease until the response ends, and stores the response before it is sent. */
function beginRun(
  { response, next, key, tell }: Attempt,
  { store, maxBytes, maxRunMs, storedHeaders: keptHeaders }: LeasedSettings,
  { run, reservedAt }: Granted,
): IdempotencyContext {
  const { fence, leaseMs } = run
  const isHead = response.req.method === 'HEAD'
  let isReleased = false
  let isFlowing = false

  const settleAs = (ending: Ending): Promise<boolean> =>
    callStore('settle', () => store.settle(run, ending))

  const lease = keepLease({ leaseMs, maxRunMs }, reservedAt, () =>
    isFlowing && !isReleased
      ? settleAs({ type: 'streaming' })
      : callStore('renew', () => store.renew(run)),
  )

  const tellEnd = laterInThisContext((reason: RunEnd, status?: number) => {
    tell({ outcome: 'accepted', reason, fence, ...(status !== undefined && { status }) })
  })

  /** Never rejects: a caller gets its answer even if the record is lost. */
  async function settle(ending: Ending, end: RunEnd, status?: number): Promise<void> {
    let outcome: RunEnd = isReleased ? 'released' : end
    try {
      const isSettled = await settleAs(isReleased ? { type: 'released' } : ending)
      if (!isSettled) outcome = 'key_lost'
    } catch {
      outcome = 'result_lost'
    }
    try {
      tellEnd(outcome, status)
    } catch {
      // Building the event reads the app's request, which may throw.
    }
  }

  const observer: CaptureObserver = {
    complete(result) {
      lease.stop()
      const encoded = encodeResult(result)
      return settle({ type: 'finished', result: encoded }, 'result_kept', result.status)
    },
    async flow() {
      lease.flow()
      isFlowing = true
      if (isReleased) return
      try {
        await settleAs({ type: 'streaming' })
      } catch {
        // The next renewal says it again.
      }
    },
    flowed() {
      lease.stop()
      return settle({ type: 'streamed' }, 'result_too_large', response.statusCode)
    },
    cutOff() {
      lease.abandon()
      void settle({ type: 'abandoned' }, 'abandoned')
    },
    unsent: (error) => answerUnsent({ next, tell }, { error, status: response.statusCode, fence }),
  }
  captureResponse({ response, isHead, maxBytes, keptHeaders }, observer)

  return {
    key,
    fence,
    get signal() {
      return lease.signal
    },
    release() {
      isReleased = true
    },
  }
}
