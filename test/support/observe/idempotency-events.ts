import { collectEvents } from './channel-events.js'

/** What is told of idempotency keys until the end of the test. */
export const hearIdempotency = () => collectEvents('idempotency')
