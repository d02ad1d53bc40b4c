import { type Attributes, type MeterProvider, metrics, trace } from '@opentelemetry/api'
import { z } from 'zod'
import type { DecisionEvent } from '../../base/decision/decision-event.js'
import type { IdempotencyEvent } from '../../base/decision/idempotency-event.js'
import { listenTo, type StopListening } from '../../base/decision/listen.js'
import { flag, optionsObject, parseOptions } from '../../base/options.js'
import { type ObservedServiceAuth, observeHealth } from './gauges.js'
import { createCounters } from './metrics.js'
import { ATTRIBUTE, SCOPE } from './names.js'
import { peerOf } from './peer.js'

/** Options of `instrument`. */
export interface InstrumentOptions {
  /** One, or a list: what the gauges of key sets, denylists and token caches are read from. */
  readonly serviceAuth?: ObservedServiceAuth | readonly ObservedServiceAuth[] | undefined
  /** Default: the global one, as it is when `instrument` is called. */
  readonly meterProvider?: MeterProvider | undefined
  /** Notes on the active span what was decided. Default: `true`. */
  readonly spans?: boolean | undefined
}

/** What `instrument` has begun. */
export interface Instrumentation {
  /** Ends it; may be called again. */
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
 * Gives OpenTelemetry what the package tells on its channels, as metrics and as attributes of the
 * active span. Call it once in a process, after the SDK has been started: each call counts everything.
 * What a meter or a span throws later has no effect on requests.
 *
 * @throws TypeError when an option is unknown or of the wrong type.
 */
export function instrument(options: InstrumentOptions = {}): Instrumentation {
  const { serviceAuth, meterProvider, spans } = parseOptions('instrument options', schema, options)
  const meter = (meterProvider ?? metrics).getMeter(SCOPE)
  const serviceAuths = serviceAuth === undefined ? [] : [serviceAuth].flat()
  const listen = createCounters(meter)
  const stops = [
    ...(serviceAuths.length === 0 ? [] : [observeHealth(meter, serviceAuths)]),
    ...listen(),
    ...(spans ? noteOnSpans() : []),
  ]
  return Object.freeze({
    stop() {
      for (const stop of stops.splice(0)) stop()
    },
  })
}

/** Notes on the active span, which is the request's, what was decided last. */
function noteOnSpans(): StopListening[] {
  return [
    listenTo<DecisionEvent>('decision', (event) =>
      note(() => ({
        [ATTRIBUTE.guard]: event.by,
        [ATTRIBUTE.outcome]: event.outcome,
        ...(event.credential !== undefined && { [ATTRIBUTE.credential]: event.credential }),
        ...(event.outcome !== 'accepted' && { [ATTRIBUTE.reason]: event.reason }),
        ...(event.keyId !== undefined && { [ATTRIBUTE.keyId]: event.keyId }),
        ...peerOf(event),
      })),
    ),
    listenTo<IdempotencyEvent>('idempotency', (event) =>
      note(() => ({
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

/** A span that has ended, or is not sampled, is left alone. */
function note(attributes: () => Attributes): void {
  const span = trace.getActiveSpan()
  if (span?.isRecording()) span.setAttributes(attributes())
}
