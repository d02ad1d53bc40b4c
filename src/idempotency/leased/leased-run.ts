import type { ServerResponse } from 'node:http'
import type { RunEnd } from '../../base/decision/idempotency-event.js'
import { callStore } from '../../base/decision/store-call.js'
import { captureResponse } from '../buffered-response/buffer-response.js'
import type { CaptureObserver } from '../buffered-response/send-buffered.js'
import { encodeResult } from '../buffered-response/stored-result.js'
import type { IdempotencyContext } from '../idempotency-context.js'
import type { Ending, IdempotencyStore, Run } from './idempotency-store.js'
import { keepLease } from './lease.js'

export interface RunSettings {
  readonly store: IdempotencyStore
  readonly maxBytes: number
  readonly maxRunMs: number
  readonly storedHeaders: ReadonlySet<string>
}

export interface RunOptions {
  readonly settings: RunSettings
  readonly run: Run
  readonly key: string
  readonly response: ServerResponse
  /** When the reservation was asked for, of `performance.now`. */
  readonly reservedAt: number
  /** Called with how the run ended. */
  onEnd(end: RunEnd, status?: number): void
  /** Called with why its answer could not be sent. */
  onUnsent(error: unknown): void
}

/** Begins a run: keeps its lease, and sees to it that its response is kept before it is sent. */
export function beginRun(options: RunOptions): IdempotencyContext {
  const { settings, run, key, response, reservedAt, onEnd, onUnsent } = options
  const { store, maxBytes, maxRunMs, storedHeaders: keptHeaders } = settings
  const isHead = response.req.method === 'HEAD'
  let isReleased = false
  let isFlowing = false

  const settleAs = (ending: Ending): Promise<boolean> =>
    callStore('settle', () => store.settle(run, ending))

  const lease = keepLease({ leaseMs: run.leaseMs, maxRunMs }, reservedAt, () =>
    isFlowing && !isReleased
      ? settleAs({ type: 'streaming' })
      : callStore('renew', () => store.renew(run)),
  )

  /** Never rejects: a caller gets its answer even if the record is lost. */
  async function settle(ending: Ending, end: RunEnd, status?: number): Promise<void> {
    const actual: Ending = isReleased ? { type: 'released' } : ending
    const told = isReleased ? 'released' : end
    let outcome: RunEnd
    try {
      outcome = (await settleAs(actual)) ? told : 'key_lost'
    } catch {
      outcome = 'result_lost'
    }
    try {
      onEnd(outcome, status)
    } catch {
      // Building the event reads the app's request, which may throw.
    }
  }

  const observer: CaptureObserver = {
    complete(result) {
      lease.stop()
      const kept = encodeResult(result)
      return settle({ type: 'finished', result: kept }, 'result_kept', result.status)
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
    unsent: onUnsent,
  }
  captureResponse({ response, isHead, maxBytes, keptHeaders }, observer)

  return {
    key,
    fence: run.fence,
    get signal() {
      return lease.signal
    },
    release() {
      isReleased = true
    },
  }
}
