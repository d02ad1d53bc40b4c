import type { Request } from 'express'
import { z } from 'zod'
import { DependencyError, dependencyOf } from '../../base/decision/dependency.js'
import { isIdempotencyObserved } from '../../base/decision/idempotency-event.js'
import {
  flag,
  functionOf,
  hasFunctions,
  integerBetween,
  lazy,
  numberBetween,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import { NEVER_STORED_HEADERS } from '../../idempotency/buffered-response/stored-result.js'
import type { IdempotencyStore } from '../../idempotency/leased/idempotency-store.js'
import { createLeasedRun } from '../../idempotency/leased/leased-run.js'
import type { CoupledStore, RunOnce } from '../../idempotency/run.js'
import type { SingleUseStore } from '../../idempotency/single-use.js'

/** Returns a text that names the operation of a request (`operation`) or is equal in its retries (`fingerprint`). */
export type RequestNamer = (request: Request) => string

/** Options of `requireIdempotencyKey` for every store. */
interface CommonOptions {
  /** Seconds, 1 to 31,536,000: how long a record is stored after the end of its run. Default: 86400. */
  readonly retentionSeconds?: number | undefined
  /** Bytes, from 0; with a coupled store at most 67,108,864: the largest body stored. Default: 262144. */
  readonly maxResponseBytes?: number | undefined
  /**
   * Names the operation that a key is scoped to, beside issuer, audience and caller. Without a route
   * (`app.use`) it is required. Default: method, mount path and route pattern.
   */
  readonly operation?: string | RequestNamer | undefined
  /**
   * The parts that must be identical in a retry. Required if no parser has read the body, or JSON cannot
   * represent it. Default: method, path, query, media type and body.
   */
  readonly fingerprint?: RequestNamer | undefined
  /**
   * The response headers stored with the result, names in any case. `content-type` and
   * `content-encoding` always are; `set-cookie` and hop-by-hop headers are refused. Default:
   * `content-type`, `content-language`, `content-disposition`, `content-location`, `location`, `etag`,
   * `last-modified`, `link`.
   */
  readonly storedHeaders?: readonly string[] | undefined
  /**
   * The answer to a request without the header: `'refuse'` answers 400, `'run'` runs the handler and stores
   * nothing, so that a retry runs it again. Default: `'refuse'`.
   */
  readonly missingKey?: 'refuse' | 'run' | undefined
  /**
   * Whether each token passes once, and with a token that is bound to a key (DPoP), each proof. Needs a store that
   * is also a `SingleUseStore`. A leased store uses the token up before the key is reserved, as `requireSingleUse`
   * does. A coupled store uses it up in the transaction of the run: a rollback frees it. Default: `false`.
   */
  readonly singleUse?: boolean | undefined
}

/** Options of `requireIdempotencyKey` with a store that leases keys, such as `redisStore`. */
export interface LeasedIdempotencyOptions extends CommonOptions {
  /** Where keys are reserved; all instances of the receiver must share it. */
  readonly store: IdempotencyStore
  /** Seconds, 1 to 3600: how long a run keeps its key without a renewal. Default: 30. */
  readonly leaseSeconds?: number | undefined
  /** Seconds, 1 to 86,400: how long a handler may run before the first byte of its answer. Default: 3600. */
  readonly maxRunSeconds?: number | undefined
  /**
   * The answer to a retry after a run that ended without a result: `'refuse'` answers 409, `'rerun'`
   * runs the handler again. Default: `'refuse'`.
   */
  readonly whenAbandoned?: 'refuse' | 'rerun' | undefined
}

/**
 * Options of `requireIdempotencyKey` with a store whose records commit with what the handler writes, or
 * with one that may be of either kind.
 */
export interface CoupledIdempotencyOptions extends CommonOptions {
  /** Where the handler's transaction is opened. */
  readonly store: CoupledStore | IdempotencyStore
  /** A transaction has no lease. */
  readonly leaseSeconds?: never
  /** The store bounds its transactions. */
  readonly maxRunSeconds?: never
  /** A run that ends without a result has written nothing. */
  readonly whenAbandoned?: never
}

/** Options of `requireIdempotencyKey`. */
export type IdempotencyOptions = LeasedIdempotencyOptions | CoupledIdempotencyOptions

const DEFAULT_STORED_HEADERS = [
  'content-type',
  'content-language',
  'content-disposition',
  'content-location',
  'location',
  'etag',
  'last-modified',
  'link',
]
/** Without these headers a client cannot read the body. */
const ALWAYS_STORED_HEADERS = ['content-type', 'content-encoding']
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/

const headerName = () =>
  z
    .string({ error: 'must be a header name' })
    .toLowerCase()
    .regex(FIELD_NAME, { error: 'must be a header name' })
    .refine((name) => !NEVER_STORED_HEADERS.test(name), {
      error: 'must not be set-cookie or a hop-by-hop header',
    })

/** The largest body of a record in Postgres: it is a value of one column, in memory more than once. */
const MAX_COUPLED_BYTES = 67_108_864

const LEASED = ['reserve', 'renew', 'settle']
const COUPLED = ['run', 'consume']
/** Options that have no meaning in a transaction. */
const LEASE_OPTIONS = ['leaseSeconds', 'maxRunSeconds', 'whenAbandoned']

const schema = lazy(() =>
  optionsObject({
    store: z.custom<IdempotencyStore | CoupledStore>(
      (store) => hasFunctions(store, LEASED) || hasFunctions(store, COUPLED),
      {
        error: `must be a store with ${LEASED.join(', ')}, such as redisStore(redis) returns, or with ${COUPLED.join(', ')}, such as postgresStore(runner) returns`,
      },
    ),
    retentionSeconds: numberBetween(1, 31_536_000, 'seconds').default(86_400),
    leaseSeconds: numberBetween(1, 3600, 'seconds').default(30),
    maxRunSeconds: numberBetween(1, 86_400, 'seconds').default(3600),
    whenAbandoned: z
      .enum(['refuse', 'rerun'], { error: "must be 'refuse' or 'rerun'" })
      .default('refuse'),
    maxResponseBytes: integerBetween(0, Number.MAX_SAFE_INTEGER).default(262_144),
    operation: z
      .custom<string | RequestNamer>(
        (value) => typeof value === 'function' || (typeof value === 'string' && value !== ''),
        { error: 'must be a non-empty string or a function' },
      )
      .optional(),
    fingerprint: functionOf<RequestNamer>().optional(),
    storedHeaders: z
      .array(headerName(), { error: 'must be a list of header names' })
      .default(DEFAULT_STORED_HEADERS),
    missingKey: z.enum(['refuse', 'run'], { error: "must be 'refuse' or 'run'" }).default('refuse'),
    singleUse: flag().default(false),
  }),
)

/** Finds options that contradict the kind of the store. */
function contradictions(input: Readonly<Record<string, unknown>>): readonly string[] {
  const { store, singleUse, maxResponseBytes } = input
  if (singleUse === true && !hasFunctions(store, ['consume']))
    return ['singleUse must not be true unless store has consume']
  if (!hasFunctions(store, ['run'])) return []
  if (LEASED.some((name) => hasFunctions(store, [name])))
    return ['store must be leased or coupled, and this one is both']
  const faults = LEASE_OPTIONS.filter((name) => input[name] !== undefined).map(
    (name) => `${name} is not an option with a coupled store`,
  )
  if (typeof maxResponseBytes === 'number' && maxResponseBytes > MAX_COUPLED_BYTES)
    faults.push(`maxResponseBytes must be at most ${MAX_COUPLED_BYTES} with a coupled store`)
  return faults
}

const milliseconds = (seconds: number): number => Math.round(seconds * 1000)

/** Checked options. Times in ms. */
export type IdempotencySettings = ReturnType<typeof parseIdempotencyOptions>

/** @throws TypeError if an option is unknown, of the wrong type or out of its range. */
export function parseIdempotencyOptions(input: unknown) {
  const options = parseOptions('requireIdempotencyKey options', schema, input, contradictions)
  const { store } = options
  const dependency = dependencyOf('store', store)
  /** Reports that the store has failed. Says what was wrong with a value, but quotes no error that the store threw. */
  const reportFailure = (error?: unknown): void => {
    const isWrongValue = error instanceof DependencyError
    const message = isWrongValue ? error.message : 'the store of requireIdempotencyKey failed'
    dependency.failed({ message, isObserved: isIdempotencyObserved() })
  }
  const lease = {
    leaseMs: milliseconds(options.leaseSeconds),
    maxRunMs: milliseconds(options.maxRunSeconds),
    rerunAbandoned: options.whenAbandoned === 'rerun',
  }
  /** Runs a handler once for its key. */
  const runOnce: RunOnce =
    'run' in store
      ? (request, work) => store.run(request, work)
      : createLeasedRun(store, lease, reportFailure)
  return {
    isCoupled: 'run' in store,
    runOnce,
    /** The store, as the dependency whose failures are reported. */
    dependency,
    reportFailure,
    retentionMs: milliseconds(options.retentionSeconds),
    maxBytes: options.maxResponseBytes,
    operation: options.operation,
    fingerprint: options.fingerprint,
    storedHeaders: new Set([...ALWAYS_STORED_HEADERS, ...options.storedHeaders]),
    runsWithoutKey: options.missingKey === 'run',
    /** Where used tokens are remembered; `undefined` if a token may be used again. */
    usedTokens: options.singleUse ? (store as unknown as SingleUseStore) : undefined,
  }
}
