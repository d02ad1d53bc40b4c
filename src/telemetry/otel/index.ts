export type { ObservedServiceAuth } from './gauges.js'
export { type Instrumentation, type InstrumentOptions, instrument } from './instrument.js'
