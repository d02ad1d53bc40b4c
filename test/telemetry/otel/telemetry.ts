import { setImmediate } from 'node:timers/promises'
import { type Attributes, context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import type { RequestHandler } from 'express'
import { type InstrumentOptions, instrument } from 'express-service-auth/otel'
import { onTestFinished } from 'vitest'
import { recordOutput } from '../../support/secret-search/index.js'

/** A series of a metric: its attributes without the package's prefix, and its value. */
export interface Series {
  readonly attributes: Attributes
  readonly value: unknown
}

export interface Metering {
  readonly meterProvider: MeterProvider
  readonly stop: () => void
  /** Collects all metrics of the package. */
  metrics(): Promise<readonly MetricData[]>
  /** The series of the metric with this name, which has no prefix here. */
  series(name: string): Promise<readonly Series[]>
}

const PREFIX = 'express_service_auth.'
const NEVER_MS = 1e8

/** Applies `instrument` to the real metrics SDK until the end of the test. */
export function meter(options: InstrumentOptions = {}): Metering {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: NEVER_MS })
  const meterProvider = new MeterProvider({ readers: [reader] })
  const { stop } = instrument({ meterProvider, ...options })
  onTestFinished(async () => {
    stop()
    await meterProvider.shutdown()
  })

  async function metrics(): Promise<readonly MetricData[]> {
    exporter.reset()
    // `instrument` adds decisions to the metrics at the end of a turn of the event loop.
    await setImmediate()
    await meterProvider.forceFlush()
    const collected = exporter.getMetrics()
    recordOutput('OpenTelemetry', collected)
    return collected.flatMap(({ scopeMetrics }) =>
      scopeMetrics
        .filter(({ scope }) => scope.name === 'express-service-auth')
        .flatMap((scope) => scope.metrics),
    )
  }

  return {
    meterProvider,
    stop,
    metrics,
    async series(name) {
      const found = (await metrics()).find(({ descriptor }) => descriptor.name === PREFIX + name)
      return (found?.dataPoints ?? []).map(({ attributes, value }) => {
        return { attributes: withoutPrefix(attributes), value }
      })
    },
  }
}

export const withoutPrefix = (attributes: Attributes): Attributes =>
  Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name.replace(PREFIX, ''), value]),
  )

export interface Tracing {
  /** Gives each request a span, which ends with its response. */
  readonly middleware: RequestHandler
  /** The spans that have ended, in the order of their ends. */
  spans(): readonly ReadableSpan[]
}

/** Registers the real tracing SDK in this process until the end of the test. */
export function traceRequests(): Tracing {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(provider)
  onTestFinished(async () => {
    trace.disable()
    context.disable()
    await provider.shutdown()
  })
  const tracer = trace.getTracer('test')
  return {
    middleware: (_request, response, next) =>
      tracer.startActiveSpan('request', (span) => {
        response.once('close', () => span.end())
        next()
      }),
    spans() {
      const spans = exporter.getFinishedSpans()
      for (const { name, attributes, events } of spans) {
        recordOutput('OpenTelemetry', { name, attributes, events })
      }
      return spans
    },
  }
}
