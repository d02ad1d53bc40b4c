import type { Meter } from '@opentelemetry/api'
import type { DecisionEvent } from '../../base/decision/decision-event.js'
import type { IdempotencyEvent } from '../../base/decision/idempotency-event.js'
import type { KeySetEvent } from '../../base/decision/key-set-event.js'
import { listenTo, type StopListening } from '../../base/decision/observers.js'
import type { StoreEvent } from '../../base/decision/store-call.js'
import { ATTRIBUTE, METRIC } from './names.js'
import { peerOf } from './peer.js'

/** In seconds, from a Redis in the same rack to a call that is about to time out. */
const DURATION_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

type Listen = () => StopListening

/** Creates the counters; the returned function starts counting the events of the channels. */
export function createCounters(meter: Meter): () => StopListening[] {
  const counters = [decisions(meter), keys(meter), fetches(meter), storeCalls(meter)]
  return () => counters.map((listen) => listen())
}

function decisions(meter: Meter): Listen {
  const counter = meter.createCounter(METRIC.decisions, {
    description: 'Decisions on requests, of each guard.',
    unit: '{decision}',
  })
  return () =>
    listenTo<DecisionEvent>('decision', (event) => {
      const { by, outcome } = event
      counter.add(1, {
        [ATTRIBUTE.guard]: by,
        [ATTRIBUTE.outcome]: outcome,
        ...(event.credential !== undefined && { [ATTRIBUTE.credential]: event.credential }),
        ...(event.outcome !== 'accepted' && { [ATTRIBUTE.errorType]: event.reason }),
        ...peerOf(event),
      })
    })
}

function keys(meter: Meter): Listen {
  const reservations = meter.createCounter(METRIC.reservations, {
    description: 'Requests that needed an idempotency key, by what became of it.',
    unit: '{reservation}',
  })
  const runs = meter.createCounter(METRIC.runs, {
    description: 'Runs of handlers behind an idempotency key, by how they ended.',
    unit: '{run}',
  })
  return () =>
    listenTo<IdempotencyEvent>('idempotency', (event) => {
      // Published in addition to the end of the run.
      if (BESIDE_ENDS.has(event.reason)) return
      if (isRunEnd(event)) runs.add(1, { [ATTRIBUTE.runEnd]: event.reason })
      else reservations.add(1, { [ATTRIBUTE.outcome]: event.reason, ...peerOf(event) })
    })
}

const BESIDE_ENDS: ReadonlySet<string> = new Set([
  'transaction_unused',
  'transaction_used_late',
  'answer_unsent',
])

const isRunEnd = (event: IdempotencyEvent): boolean =>
  'fence' in event && event.reason !== 'reserved'

function fetches(meter: Meter): Listen {
  const counter = meter.createCounter(METRIC.keySetFetches, {
    description: 'Fetches of key sets.',
    unit: '{fetch}',
  })
  return () =>
    listenTo<KeySetEvent>('keys', (event) => {
      const { type, jwksUri } = event
      if (type !== 'fetched' && type !== 'not_modified' && type !== 'failed') return
      counter.add(1, {
        [ATTRIBUTE.keySetUrl]: jwksUri,
        [ATTRIBUTE.outcome]: type,
        ...(event.type === 'failed' && { [ATTRIBUTE.errorType]: event.reason }),
      })
    })
}

function storeCalls(meter: Meter): Listen {
  const duration = meter.createHistogram(METRIC.storeOperationDuration, {
    description: 'How long the calls of stores take.',
    unit: 's',
    advice: { explicitBucketBoundaries: DURATION_BUCKETS },
  })
  return () =>
    listenTo<StoreEvent>('store', ({ operation, ok, durationMs }) => {
      duration.record(durationMs / 1000, {
        [ATTRIBUTE.storeOperation]: operation,
        ...(!ok && { [ATTRIBUTE.errorType]: 'store_unavailable' }),
      })
    })
}
