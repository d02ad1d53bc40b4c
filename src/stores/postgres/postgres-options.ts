import { z } from 'zod'
import {
  hasFunctions,
  integerBetween,
  lazy,
  numberBetween,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import type { Isolation, TransactionRunner } from './runner.js'
import { DEFAULT_SCHEMA, SCHEMA_NAME } from './sql/literals.js'

/** Options of `postgresStore`. */
export interface PostgresStoreOptions {
  /** The schema that `migration` created: `[a-z_][a-z0-9_]{0,62}`. Default: `'service_auth'`. */
  readonly schema?: string | undefined
  /** Milliseconds, 100 to 3,600,000: the time limit of a whole run. Default: 30000. */
  readonly transactionMs?: number | undefined
  /** Milliseconds, 1 to 60,000: the maximum wait for a connection. Default: 1000. */
  readonly acquireMs?: number | undefined
  /**
   * Milliseconds, 1 to 60,000: the time to find out whether a COMMIT without a reply took effect, and, in
   * addition to `acquireMs`, the time for the queries before a handler begins. Default: 3000.
   */
  readonly resolveMs?: number | undefined
  /**
   * Seconds, 1 to 86,400: the pause between sweeps of expired rows. `false`: the store sweeps only when
   * `sweep` is called. Default: 60.
   */
  readonly sweepSeconds?: number | false | undefined
  /** The isolation level of a handler's transaction. Default: the server's. */
  readonly isolation?: Isolation | undefined
}

export const schemaName = (): z.ZodString => {
  const error = 'must be at most 63 lower-case letters, digits and _, such as service_auth'
  return z.string({ error }).regex(SCHEMA_NAME, { error })
}

/** Postgres reserves these two names for other purposes, even in double quotes. */
const NO_ROLES = ['public', 'none']

export const roleName = (): z.ZodString =>
  schemaName().refine((name) => !NO_ROLES.includes(name), { error: 'must be the name of a role' })

const ISOLATIONS = ['read committed', 'repeatable read', 'serializable'] as const

const sweepSeconds = numberBetween(1, 86_400, 'seconds')

const schema = lazy(() =>
  optionsObject({
    schema: schemaName().default(DEFAULT_SCHEMA),
    transactionMs: integerBetween(100, 3_600_000).default(30_000),
    acquireMs: integerBetween(1, 60_000).default(1000),
    resolveMs: integerBetween(1, 60_000).default(3000),
    sweepSeconds: z
      .union([sweepSeconds, z.literal(false)], {
        error: 'must be a number of seconds from 1 to 86400, or false',
      })
      .default(60),
    isolation: z
      .enum(ISOLATIONS, {
        error: `must be one of ${ISOLATIONS.map((one) => `'${one}'`).join(', ')}`,
      })
      .optional(),
  }),
)

/** @throws TypeError if an option is unknown, of the wrong type or out of range. */
export const parsePostgresOptions = (input: unknown) =>
  parseOptions('postgresStore options', schema, input)

/** @throws TypeError if `runner` is not a `TransactionRunner`. */
export function assertRunner(runner: unknown): asserts runner is TransactionRunner<unknown> {
  if (hasFunctions(runner, ['transaction', 'query'])) return
  throw new TypeError(
    'postgresStore: the runner must be a TransactionRunner, such as fromPg(pool) returns',
  )
}
