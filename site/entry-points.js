/** What can be imported, and what its page in the reference begins with. */
export const ENTRY_POINTS = [
  {
    source: 'index',
    name: 'express-service-auth',
    text: 'The middlewares and their options. Start with the [quick start](/README#quick-start), the [policy](/docs/policy) and [idempotent writes](/docs/idempotency).',
  },
  {
    source: 'client/index',
    name: 'express-service-auth/client',
    text: 'Tokens and calls of the calling side: [calling](/docs/calling).',
  },
  {
    source: 'stores/redis/index',
    name: 'express-service-auth/redis',
    text: 'Records, used tokens and denials in [Redis](/docs/stores/redis), and the [live denylist](/docs/denylist).',
  },
  {
    source: 'stores/postgres/index',
    name: 'express-service-auth/postgres',
    text: 'The write, its record and its response in one transaction: [Postgres](/docs/stores/postgres).',
  },
  {
    source: 'telemetry/otel/index',
    name: 'express-service-auth/otel',
    text: 'Metrics and spans: [OpenTelemetry](/docs/opentelemetry).',
  },
  {
    source: 'migration/index',
    name: 'express-service-auth/migration',
    text: 'Accounts of an older identity service: [migration](/docs/migration) and [late sign-ups](/docs/migration-endpoint).',
  },
  {
    source: 'testing/index',
    name: 'express-service-auth/testing',
    text: 'An issuer, hostile tokens and the rules of a store: [testing](/docs/testing) and [stores of your own](/docs/stores/custom).',
  },
]
