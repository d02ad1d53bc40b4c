/**
 * Metrics and spans for OpenTelemetry.
 *
 * @module express-service-auth/otel
 */

export type { ObservedServiceAuth } from './gauges.js'
export { type Instrumentation, type InstrumentOptions, instrument } from './instrument.js'
