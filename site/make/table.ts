import type { Group } from './site.js'

/** What needs no page: the site has a navigation of its own. */
export const LEFT_OUT: readonly string[] = ['README.md#documentation']

/** Which page holds what of README.md and the other documents, in the order of the navigation. */
export const GROUPS: readonly Group[] = [
  {
    name: 'Begin',
    pages: [
      {
        path: 'start',
        title: 'Start',
        about: 'A receiver, an idempotent write and a caller, in fifteen minutes.',
        holds: [
          'README.md',
          'README.md#install',
          'README.md#quick-start',
          'README.md#with-your-own-core',
          'README.md#an-idempotent-write',
          'README.md#calling',
          'README.md#redis-or-postgres',
          'README.md#what-callers-see',
          'README.md#why-was-a-call-refused',
          'README.md#testing',
          'README.md#compared-with-other-packages',
          'README.md#limits',
        ],
      },
      {
        path: 'try',
        name: 'Try it: the control room',
        about:
          'In your browser: send hostile calls, see both sides of each refusal, kill a receiver in the middle of a write.',
        holds: ['docs/control-room.md#*'],
      },
      {
        path: 'how-it-decides',
        about: 'From a request to an identity or a refusal, in one picture.',
        holds: ['docs/how-it-decides.md#*'],
      },
      {
        path: 'responses',
        about: 'Every response, and when a caller may retry.',
        holds: ['docs/responses.md#*'],
      },
      { path: 'openapi', holds: ['docs/openapi.md#*'] },
    ],
  },
  {
    name: 'Receive calls',
    pages: [
      { path: 'policy', holds: ['docs/policy.md#*'] },
      { path: 'middleware-order', holds: ['docs/middleware-order.md#*'] },
      {
        path: 'idempotency',
        about:
          'Idempotency keys: a retry gets the first response, and the handler does not run again.',
        holds: ['docs/idempotency.md#*'],
      },
      {
        path: 'denylist',
        holds: ['docs/denylist.md#*'],
      },
      {
        path: 'sessions',
        holds: ['docs/sessions.md#*'],
      },
      { path: 'testing', holds: ['docs/testing.md#*'] },
      { path: 'errors', holds: ['docs/errors.md#*'] },
    ],
  },
  {
    name: 'Stores',
    pages: [
      { path: 'stores/redis', holds: ['docs/stores/redis.md#*'] },
      {
        path: 'stores/postgres',
        about: 'The write, its record and its response are one transaction.',
        holds: ['docs/stores/postgres.md#*'],
      },
      {
        path: 'stores/custom',
        name: 'In memory, or your own',
        holds: ['docs/stores/custom.md#*'],
      },
      { path: 'stores/encryption', holds: ['docs/stores/encryption.md#*'] },
      { path: 'outbox', holds: ['docs/outbox.md#*'] },
    ],
  },
  {
    name: 'Call others',
    pages: [
      {
        path: 'calling',
        about: 'Tokens that are renewed in time, and calls that are retried if that is safe.',
        holds: ['docs/calling.md#*'],
      },
    ],
  },
  {
    name: 'Operate',
    pages: [
      {
        path: 'reasons',
        title: 'Why was a call refused?',
        about: 'Every reason, what it means, and what to do about it.',
        holds: [
          'docs/operations.md#every-reason',
          'docs/operations.md#from-a-refused-request-to-its-cause',
        ],
        rowsAsHeadings: true,
      },
      {
        path: 'operations/index',
        about: 'For whoever runs a receiver, at three in the morning.',
        holds: [
          'docs/operations.md',
          'docs/operations.md#before-you-begin',
          'docs/operations.md#is-all-well',
          'docs/operations.md#what-to-alert-on',
          'docs/operations.md#capacity',
        ],
      },
      {
        path: 'operations/unknown-outcome',
        holds: ['docs/operations.md#a-write-whose-outcome-nobody-knows'],
      },
      { path: 'operations/stolen', holds: ['docs/operations.md#something-was-stolen'] },
      {
        path: 'operations/stores',
        title: 'When a store fails',
        holds: ['docs/operations.md#redis', 'docs/operations.md#postgres'],
      },
      { path: 'operations/rotations', holds: ['docs/operations.md#rotations'] },
      { path: 'logging', holds: ['docs/logging.md#*'] },
      { path: 'shutdown', holds: ['docs/shutdown.md#*'] },
      { path: 'opentelemetry', holds: ['docs/opentelemetry.md#*'] },
      { path: 'cli', holds: ['docs/cli.md#*'] },
    ],
  },
  {
    name: 'Move',
    pages: [
      {
        path: 'from-express-jwt',
        title: 'From `express-jwt`',
        holds: ['docs/from-express-jwt.md#*'],
      },
      {
        path: 'from-express-oauth2-jwt-bearer',
        holds: ['docs/from-express-oauth2-jwt-bearer.md#*'],
      },
      {
        path: 'migration',
        name: 'Users, from an older service',
        holds: ['docs/migration.md#*'],
      },
      { path: 'migration-endpoint', holds: ['docs/migration-endpoint.md#*'] },
      { path: 'upgrading', holds: ['docs/upgrading.md#*'] },
      { path: 'versioning', holds: ['docs/versioning.md#*'] },
      { path: 'changelog', holds: ['CHANGELOG.md#*'] },
    ],
  },
  {
    name: 'Judge it',
    pages: [
      {
        path: 'security-model',
        about: 'What it proves, and what it does not.',
        holds: ['docs/security-model.md#*'],
      },
      {
        path: 'security',
        name: 'Security: report a weakness',
        holds: ['SECURITY.md#*'],
      },
      { path: 'comparison', holds: ['docs/comparison.md#*'] },
    ],
  },
  { name: 'Reference', pages: [] },
  {
    name: 'How it is built',
    pages: [
      { path: 'architecture', holds: ['docs/architecture.md#*'] },
      { path: 'contributing', holds: ['CONTRIBUTING.md#*'] },
      { path: 'code-of-conduct', holds: ['CODE_OF_CONDUCT.md#*'] },
      { path: 'stand-in-core', holds: ['example-app/identity-core/README.md#*'] },
    ],
  },
]

/** The group with a page for each decision: a new one needs no line here. */
export const DECISIONS = 'How it is built'

/** The cards of the first page, by the paths of their pages. */
export const CARDS: readonly string[] = [
  'reasons',
  'how-it-decides',
  'try',
  'idempotency',
  'calling',
  'security-model',
]
