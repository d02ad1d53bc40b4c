/** What stands at the top of the page of an entry point: where to read what it is for. */
export const INTRODUCTIONS: Readonly<Record<string, string>> = {
  'express-service-auth':
    'The middlewares and what they take. Begin with [a first read](/README.md#a-first-read); [the policy](/README.md#the-policy) and [writes that run once](/README.md#writes-that-run-once) say what the options are for.',
  redis:
    'Where reservations and denials are kept for all instances: [Redis](/README.md#redis) and [shutting out at once](/README.md#shutting-out-at-once).',
  postgres:
    'Where a write, its record and its answer are one transaction: [Postgres](/README.md#postgres).',
  otel: 'Counts and times for OpenTelemetry: [metrics and traces](/README.md#metrics-and-traces).',
  client: 'The calling side: [calling another service](/README.md#calling-another-service).',
  migration: 'Accounts of an older identity service: [migration](/README.md#migration).',
  testing:
    'An issuer, hostile tokens and the rules of stores: [testing your own service](/README.md#testing-your-own-service), [a store of your own](/README.md#a-store-of-your-own).',
}
