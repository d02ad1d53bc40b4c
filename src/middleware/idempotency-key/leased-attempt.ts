import { randomUUID } from 'node:crypto'
import { laterInThisContext } from '../../base/decision/idempotency-event.js'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { callStore } from '../../base/decision/store-call.js'
import type { Reservation, ReservationRequest } from '../../idempotency/leased/idempotency-store.js'
import { beginRun } from '../../idempotency/leased/leased-run.js'
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
  const { response, tell, record: key, fingerprint } = attempt
  const { retentionMs, leaseMs, rerunAbandoned } = settings
  const owner = randomUUID()
  const request = { key, owner, fingerprint, leaseMs, retentionMs, rerunAbandoned }
  const reservedAt = performance.now()
  let found: Reservation
  try {
    found = await callStore('reserve', () => settings.store.reserve(request))
  } catch {
    refuse(response, 'store_unavailable')
    tell({ outcome: 'undecided', reason: 'store_unavailable', status: 503 })
    return
  }
  if (found.outcome !== 'reserved') answer(attempt, found)
  else if (response.headersSent) await tooLate(settings, { ...request, fence: found.fence })
  else run(attempt, settings, { request, fence: found.fence, reservedAt })
}

function answer(
  attempt: Attempt,
  found: Exclude<Reservation, { readonly outcome: 'reserved' }>,
): void {
  switch (found.outcome) {
    case 'running':
      turnDown(attempt, 'request_in_progress', found.leaseLeftMs)
      return
    case 'finished':
      replay(attempt, found.result)
      return
    case 'mismatch':
      turnDown(attempt, 'key_reused')
      return
    case 'result_not_stored':
      turnDown(attempt, 'result_not_stored')
      return
    case 'abandoned':
    case 'unreadable':
      outcomeUnknown(attempt, found.outcome)
      return
    default:
      throw new TypeError('store.reserve resolved to none of the outcomes of a reservation')
  }
}

/** Something else (a timeout, say) has answered while the key was being reserved. */
async function tooLate(
  { store }: LeasedSettings,
  run: Parameters<typeof store.settle>[0],
): Promise<never> {
  try {
    await callStore('settle', () => store.settle(run, { type: 'released' }))
  } catch {
    // Its lease will run out.
  }
  throw wrongWiring('the response had begun before the key was reserved')
}

interface Reserved {
  readonly request: ReservationRequest
  readonly fence: number
  readonly reservedAt: number
}

function run(
  { state, request, response, next, key, tell }: Attempt,
  settings: LeasedSettings,
  { request: reservation, fence, reservedAt }: Reserved,
): void {
  if (!Number.isSafeInteger(fence))
    throw new TypeError('store.reserve gave no safe integer as fence')
  const { key: record, owner, fingerprint, leaseMs, retentionMs } = reservation
  const context = beginRun({
    settings,
    run: { key: record, owner, fence, fingerprint, leaseMs, retentionMs },
    key,
    response,
    reservedAt,
    onEnd: laterInThisContext((end, status) => {
      tell({ outcome: 'accepted', reason: end, fence, ...(status !== undefined && { status }) })
    }),
    onUnsent: (error) =>
      answerUnsent({ next, tell }, { error, status: response.statusCode, fence }),
  })
  state.reservation = { context, store: settings.store }
  request.idempotency = context
  tell({ outcome: 'accepted', reason: 'reserved', fence })
  next()
}
