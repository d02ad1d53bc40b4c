import { randomUUID } from 'node:crypto'
import { bindToCurrentContext, type RunEnd } from '../../base/decision/idempotency-event.js'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { callStore } from '../../base/decision/store-call.js'
import { SignalOf } from '../../base/lazy-signal.js'
import {
  type BufferObserver,
  bufferResponse,
} from '../../idempotency/buffered-response/buffer-response.js'
import { encodeResult } from '../../idempotency/buffered-response/stored-result.js'
import type { IdempotencyContext } from '../../idempotency/idempotency-context.js'
import {
  checkReservation,
  type Ending,
  type Reservation,
  type Run,
  renewRun,
  settleRun,
} from '../../idempotency/leased/idempotency-store.js'
import { startLease } from '../../idempotency/leased/lease.js'
import { refuse } from '../refusal-table.js'
import type { LeasedSettings } from './idempotency-options.js'
import {
  answerExisting,
  type IdempotentContext,
  type RequestKey,
  reportStoreFailure,
  reportUnsentAnswer,
} from './idempotent-context.js'

type KeyedContext = IdempotentContext & RequestKey

/** Reserves the key, and runs the handler under a lease of it. */
export async function runLeased(context: KeyedContext, settings: LeasedSettings): Promise<void> {
  const { state, request, response, next, emit, recordId, fingerprint } = context
  const { store, retentionMs, leaseMs, rerunAbandoned } = settings
  const owner = randomUUID()
  const reservation = { recordId, owner, fingerprint, leaseMs, retentionMs, rerunAbandoned }
  const reservedAt = performance.now()
  let reply: Reservation
  try {
    reply = await callStore('reserve', () => store.reserve(reservation))
  } catch {
    refuse(response, 'store_unavailable')
    emit({ outcome: 'undecided', reason: 'store_unavailable', status: 503 })
    return
  }
  let checked: ReturnType<typeof checkReservation>
  try {
    checked = checkReservation(reservation, reply, store)
  } catch (error) {
    reportStoreFailure(settings, error)
    throw error
  }
  if ('existing' in checked) {
    answerExisting(context, checked.existing)
    return
  }
  const { run } = checked
  // Other code (such as a timeout) has answered while the key was being reserved.
  if (response.headersSent) {
    await releaseKey(settings, run)
    throw wrongWiring('the response had begun before the key was reserved')
  }
  const idempotency = beginRun(context, settings, { run, reservedAt })
  state.reservation = { release: idempotency.release }
  request.idempotency = idempotency
  emit({ outcome: 'accepted', reason: 'reserved', fence: run.fence })
  next()
}

async function releaseKey(settings: LeasedSettings, run: Run): Promise<void> {
  try {
    await settleRun(settings.store, run, { type: 'released' })
  } catch (error) {
    // The run counts as abandoned once its lease has expired.
    reportStoreFailure(settings, error)
  }
}

interface Granted {
  readonly run: Run
  /** When the reservation was requested, from `performance.now`. */
  readonly reservedAt: number
}

/** Renews the lease until the response ends, and stores the response before it is sent. */
function beginRun(
  { response, next, key, emit }: KeyedContext,
  settings: LeasedSettings,
  { run, reservedAt }: Granted,
): IdempotencyContext {
  const { store, maxBytes, maxRunMs, storedHeaders } = settings
  const { fence, leaseMs } = run
  const isHead = response.req.method === 'HEAD'
  let isReleased = false

  async function withReport(call: Promise<boolean>): Promise<boolean> {
    try {
      return await call
    } catch (error) {
      reportStoreFailure(settings, error)
      throw error
    }
  }

  const lease = startLease({ leaseMs, maxRunMs }, reservedAt, () =>
    withReport(renewRun(store, run)),
  )

  const emitEnd = bindToCurrentContext((reason: RunEnd, status?: number) => {
    emit({ outcome: 'accepted', reason, fence, ...(status !== undefined && { status }) })
  })

  /** Never rejects, because a client gets its answer even if the record is lost. */
  async function settle(ending: Ending, end: RunEnd, status?: number): Promise<void> {
    let outcome: RunEnd = isReleased ? 'released' : end
    try {
      const isSettled = await withReport(
        settleRun(store, run, isReleased ? { type: 'released' } : ending),
      )
      if (!isSettled) outcome = 'key_lost'
    } catch {
      outcome = 'result_lost'
    }
    try {
      emitEnd(outcome, status)
    } catch {
      // Building the event reads the app's request, which may throw.
    }
  }

  const observer: BufferObserver = {
    onComplete(result) {
      lease.stopRenewing()
      const encoded = encodeResult(result)
      return settle({ type: 'finished', result: encoded }, 'result_kept', result.status)
    },
    onStream() {
      lease.stopRenewing()
      return settle({ type: 'not_stored' }, 'result_too_large', response.statusCode)
    },
    async onAbort() {
      await lease.abandon()
      await settle({ type: 'abandoned' }, 'abandoned')
    },
    onSendError: (error) =>
      reportUnsentAnswer({ next, emit }, { error, status: response.statusCode, fence }),
  }
  bufferResponse({ response, isHead, maxBytes, storedHeaders }, observer)

  return Object.assign(new SignalOf(lease), {
    key,
    fence,
    release() {
      isReleased = true
    },
  })
}
