import { type Attributes, type MeterProvider, metrics, trace } from '@opentelemetry/api'
import { z } from 'zod'
import type { DecisionEvent } from '../../base/decision/decision-event.js'
import type { IdempotencyEvent } from '../../base/decision/idempotency-event.js'
import { listenTo, type StopListening } from '../../base/decision/observers.js'
import { flag, optionsObject, parseOptions } from '../../base/options.js'
import { type ObservedServiceAuth, observeHealth } from './gauges.js'
import { createCounters } from './metrics.js'
import { ATTRIBUTE, SCOPE } from './names.js'
import { peerOf } from './peer.js'

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

const serviceAuthSchema = z.custom<ObservedServiceAuth | readonly ObservedServiceAuth[]>(
  (value) => [value].flat().every((one) => hasFunction(one, 'health')),
  { error: 'must be what serviceAuth returns, or a list of them' },
)

const schema = optionsObject({
  serviceAuth: serviceAuthSchema.optional(),
  meterProvider: z
    .custom<MeterProvider>((value) => hasFunction(value, 'getMeter'), {
      error: 'must be a MeterProvider of OpenTelemetry',
    })
    .optional(),
  spans: flag().default(true),
})

/**
 * Reports the events that the package publishes on its channels to OpenTelemetry, as metrics and as
 * attributes of the active span. Call it once per process, after the SDK has started, because each call
 * counts every event. Later errors of a meter or a span have no effect on requests.
 *
 * @throws TypeError if an option is unknown or of the wrong type.
 */
export function instrument(options: InstrumentOptions = {}): Instrumentation {
  const { serviceAuth, meterProvider, spans } = parseOptions('instrument options', schema, options)
  const meter = (meterProvider ?? metrics).getMeter(SCOPE)
  const serviceAuths = serviceAuth === undefined ? [] : [serviceAuth].flat()
  const listen = createCounters(meter)
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
