import type { Group } from './site.js'

/** What needs no page: the site has a navigation of its own. */
export const LEFT_OUT: readonly string[] = ['README.md#contents']

/** Which page holds what of README.md and the other documents, in the order of the navigation. */
export const GROUPS: readonly Group[] = [
  {
    name: 'Begin',
    pages: [
      {
        path: 'start',
        title: 'Start',
        about: 'A receiver, and a write that runs once.',
        holds: ['README.md', 'README.md#a-first-read', 'README.md#a-write-that-runs-once'],
      },
      {
        path: 'try',
        name: 'Try it: the control room',
        about:
          'In your browser: send hostile calls, see both sides of each refusal, kill a receiver in the middle of a write.',
        holds: ['README.md#try-it'],
      },
      {
        path: 'how-it-decides',
        about: 'From a request to an identity or a refusal, in one picture.',
        holds: ['docs/how-it-decides.md#*', 'README.md#the-order-of-things'],
      },
      {
        path: 'answers',
        about: 'The four answers, when to call again, and what your own faults look like.',
        holds: [
          'README.md#what-a-caller-gets',
          'README.md#when-a-caller-may-retry',
          'README.md#when-the-fault-is-your-own',
        ],
      },
    ],
  },
  {
    name: 'Receive calls',
    pages: [
      { path: 'policy', holds: ['README.md#the-policy', 'README.md#key-sets'] },
      {
        path: 'writes',
        about:
          'Idempotency keys: a retry gets the first answer, and the handler does not run again.',
        holds: ['README.md#writes-that-run-once'],
      },
      {
        path: 'containment',
        name: 'Shutting out: the denylist',
        holds: ['README.md#shutting-out-at-once'],
      },
      {
        path: 'sessions',
        holds: ['README.md#endpoints-for-sessions-too', 'docs/sessions.md#*'],
      },
      { path: 'testing', holds: ['README.md#testing-your-own-service'] },
    ],
  },
  {
    name: 'Stores',
    pages: [
      { path: 'stores/redis', holds: ['README.md#redis'] },
      {
        path: 'stores/postgres',
        about: 'The write, its record and its answer are one transaction.',
        holds: ['README.md#postgres'],
      },
      {
        path: 'stores/own',
        name: 'In memory, or your own',
        holds: ['README.md#a-store-of-your-own'],
      },
      { path: 'stores/encryption', holds: ['README.md#encryption-at-rest'] },
    ],
  },
  {
    name: 'Call others',
    pages: [
      {
        path: 'calling',
        about: 'Tokens that are there in time, and calls that repeat themselves where they may.',
        holds: ['README.md#calling-another-service', 'docs/calling.md#*'],
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
          'README.md#why-a-caller-was-refused',
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
      { path: 'operations/shutdown', holds: ['README.md#probes-and-shutdown'] },
      { path: 'operations/metrics', holds: ['README.md#metrics-and-traces'] },
      { path: 'operations/command', holds: ['README.md#the-command-service-auth'] },
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
        path: 'migration/index',
        name: 'Users, from an older service',
        holds: ['README.md#migration'],
      },
      { path: 'migration/run-book', holds: ['docs/migration.md#*'] },
      { path: 'upgrading', holds: ['docs/upgrading.md#*'] },
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
        holds: ['SECURITY.md#*', 'README.md#what-it-does-not-do'],
      },
      { path: 'beside-other-packages', holds: ['README.md#beside-other-packages'] },
    ],
  },
  { name: 'Reference', pages: [] },
  {
    name: 'How it is built',
    pages: [{ path: 'architecture', holds: ['docs/architecture.md#*'] }],
  },
]

/** The group with a page for each decision: a new one needs no line here. */
export const DECISIONS = 'How it is built'

/** The cards of the first page, by the paths of their pages. */
export const CARDS: readonly string[] = [
  'reasons',
  'how-it-decides',
  'try',
  'writes',
  'calling',
  'security-model',
]
