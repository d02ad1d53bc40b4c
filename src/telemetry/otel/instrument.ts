import { type Attributes, type Meter, type MeterProvider, metrics, trace } from '@opentelemetry/api'
import { z } from 'zod'
import type { DecisionEvent } from '../../base/decision/decision-event.js'
import type { IdempotencyEvent } from '../../base/decision/idempotency-event.js'
import type { KeySetEvent } from '../../base/decision/key-set-event.js'
import { listenTo, notify, type StopListening } from '../../base/decision/observers.js'
import type { StoreEvent } from '../../base/decision/store-event.js'
import { flag, lazy, optionsObject, parseOptions } from '../../base/options.js'
import { type ObservedServiceAuth, observeHealth } from './gauges.js'
import { ATTRIBUTE, METRIC, peerOf, SCOPE } from './metric-names.js'

/** Options of `instrument`. */
export interface InstrumentOptions {
  /** One or a list: the source of the gauges of key sets, denylists and token caches. */
  readonly serviceAuth?: ObservedServiceAuth | readonly ObservedServiceAuth[] | undefined
  /** Default: the global provider at the time of the call. */
  readonly meterProvider?: MeterProvider | undefined
  /** Sets decisions as attributes of the active span. Default: `true`. */
  readonly spans?: boolean | undefined
}

/** A running instrumentation, which `instrument` has started. */
export interface Instrumentation {
  /** Stops it; may be called again. */
  stop(): void
}

const hasFunction = (value: unknown, name: string): boolean =>
  ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
  typeof (value as Record<string, unknown>)[name] === 'function'

const serviceAuthOption = () =>
  z.custom<ObservedServiceAuth | readonly ObservedServiceAuth[]>(
    (value) => [value].flat().every((one) => hasFunction(one, 'health')),
    { error: 'must be what serviceAuth returns, or a list of them' },
  )

const schema = lazy(() =>
  optionsObject({
    serviceAuth: serviceAuthOption().optional(),
    meterProvider: z
      .custom<MeterProvider>((value) => hasFunction(value, 'getMeter'), {
        error: 'must be a MeterProvider of OpenTelemetry',
      })
      .optional(),
    spans: flag().default(true),
  }),
)

/**
 * Reports the events that the package publishes on its channels to OpenTelemetry, as metrics and as
 * attributes of the active span. Call it once per process, after the SDK has started, because each call
 * counts every event. Later errors of a meter or a span have no effect on requests.
 *
 * @throws TypeError if an option is unknown or of the wrong type.
 *
 * @example
 * ```ts
 * import { serviceAuth } from 'express-service-auth'
 * import { instrument } from 'express-service-auth/otel'
 * import { createTestIssuer } from 'express-service-auth/testing'
 *
 * const auth = serviceAuth((await createTestIssuer()).policy())
 * const instrumentation = instrument({ serviceAuth: auth, spans: false })
 * process.once('SIGTERM', () => instrumentation.stop())
 * ```
 */
export function instrument(options: InstrumentOptions = {}): Instrumentation {
  const { serviceAuth, meterProvider, spans } = parseOptions('instrument options', schema, options)
  const meter = (meterProvider ?? metrics).getMeter(SCOPE)
  const serviceAuths = serviceAuth === undefined ? [] : [serviceAuth].flat()
  const listen = createCounters(meter)
  // Creating instruments may throw, so it precedes all listening.
  const stops = [
    ...(serviceAuths.length === 0 ? [] : [observeHealth(meter, serviceAuths)]),
    ...listen(),
    ...(spans ? setSpanAttributes() : []),
  ]
  return Object.freeze({
    stop() {
      for (const stop of stops.splice(0)) stop()
    },
  })
}

/** Sets the last decision as attributes of the active span, which is the request's. */
function setSpanAttributes(): StopListening[] {
  return [
    listenTo<DecisionEvent>('decision', (event) =>
      setAttributes(() => ({
        [ATTRIBUTE.guard]: event.by,
        [ATTRIBUTE.outcome]: event.outcome,
        ...(event.credential !== undefined && { [ATTRIBUTE.credential]: event.credential }),
        ...(event.outcome !== 'accepted' && { [ATTRIBUTE.reason]: event.reason }),
        ...(event.keyId !== undefined && { [ATTRIBUTE.keyId]: event.keyId }),
        ...peerOf(event),
      })),
    ),
    listenTo<IdempotencyEvent>('idempotency', (event) =>
      setAttributes(() => ({
        [ATTRIBUTE.guard]: event.by,
        [ATTRIBUTE.outcome]: event.outcome,
        [ATTRIBUTE.reason]: event.reason,
        ...(event.record !== undefined && { [ATTRIBUTE.record]: event.record }),
        ...('fence' in event && { [ATTRIBUTE.fence]: event.fence }),
        ...peerOf(event),
      })),
    ),
  ]
}

/** Skips a span that has ended or is not sampled. */
function setAttributes(attributes: () => Attributes): void {
  const span = trace.getActiveSpan()
  if (span?.isRecording()) span.setAttributes(attributes())
}

/** In seconds, from a Redis in the same rack to a call that is about to time out. */
const DURATION_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

type Listen = () => StopListening

/** Creates the counters; the returned function starts counting the events of the channels. */
function createCounters(meter: Meter): () => StopListening[] {
  const counters = [decisions(meter), writes(meter), fetches(meter), storeCalls(meter)]
  return () => counters.map((listen) => listen())
}

function decisions(meter: Meter): Listen {
  const counter = meter.createCounter(METRIC.decisions, {
    description: 'Decisions on requests, of each guard.',
    unit: '{decision}',
  })
  // Equal decisions of a turn of the event loop are added at its end, all at once: an addition takes the SDK 2 µs.
  let pending = new Map<string, { readonly event: DecisionEvent; count: number }>()
  function add(): void {
    const counts = pending
    pending = new Map()
    for (const { event, count } of counts.values()) {
      notify(() => counter.add(count, decisionAttributes(event)), event)
    }
  }
  return () => {
    const stop = listenTo<DecisionEvent>('decision', (event) => {
      const { by, credential, caller } = event
      const result = event.outcome === 'accepted' ? event.confirmation : event.reason
      // The length separates the name of a credential, which may contain a comma, from the caller.
      const name = [by, event.outcome, result, credential?.length, credential, caller].join()
      const equal = pending.get(name)
      if (equal !== undefined) equal.count += 1
      else {
        if (pending.size === 0) setImmediate(add)
        pending.set(name, { event, count: 1 })
      }
    })
    return () => {
      stop()
      add()
    }
  }
}

const decisionAttributes = (event: DecisionEvent): Attributes => ({
  [ATTRIBUTE.guard]: event.by,
  [ATTRIBUTE.outcome]: event.outcome,
  ...(event.credential !== undefined && { [ATTRIBUTE.credential]: event.credential }),
  ...(event.outcome !== 'accepted' && { [ATTRIBUTE.errorType]: event.reason }),
  ...('confirmation' in event && { [ATTRIBUTE.confirmation]: event.confirmation }),
  ...peerOf(event),
})

function writes(meter: Meter): Listen {
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
      if (PUBLISHED_BESIDE_RUN_END.has(event.reason)) return
      if (isRunEnd(event)) runs.add(1, { [ATTRIBUTE.runEnd]: event.reason })
      else reservations.add(1, { [ATTRIBUTE.outcome]: event.reason, ...peerOf(event) })
    })
}

const PUBLISHED_BESIDE_RUN_END: ReadonlySet<string> = new Set([
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
