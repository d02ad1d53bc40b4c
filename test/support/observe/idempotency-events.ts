import { collectEvents } from './channel-events.js'

/** Collects the events of idempotency keys until the end of the test. */
export const hearIdempotency = () => collectEvents('idempotency')
