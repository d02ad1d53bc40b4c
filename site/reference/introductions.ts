/** What stands at the top of the page of an entry point: where to read what it is for. */
export const INTRODUCTIONS: Readonly<Record<string, string>> = {
  'express-service-auth':
    'The middlewares and what they take. Begin with [the quick start](/README.md#quick-start); [the policy](/docs/policy.md) and [idempotent writes](/docs/idempotency.md) say what the options are for.',
  redis:
    'Where reservations and denials are kept for all instances: [Redis](/docs/stores/redis.md) and [the live denylist](/docs/denylist.md).',
  postgres:
    'Where a write, its record and its answer are one transaction: [Postgres](/docs/stores/postgres.md).',
  otel: 'Counts and times for OpenTelemetry: [OpenTelemetry](/docs/opentelemetry.md).',
  client: 'The calling side: [calling another service](/docs/calling.md).',
  migration:
    'Accounts of an older identity service: [moving accounts](/docs/migration.md) and [late sign-ups](/docs/migration-endpoint.md).',
  testing:
    'An issuer, hostile tokens and the rules of stores: [testing your own service](/docs/testing.md), [a store of your own](/docs/stores/custom.md).',
}
