import type { Request } from 'express'
import { z } from 'zod'
import { type Dependency, dependencyOf } from '../../base/decision/dependency.js'
import {
  flag,
  functionOf,
  hasFunctions,
  integerBetween,
  isObject,
  lazy,
  numberBetween,
  optionsObject,
  parseOptions,
  storeWith,
} from '../../base/options.js'
import { NEVER_STORED_HEADERS } from '../../idempotency/buffered-response/stored-result.js'
import type { CoupledStore } from '../../idempotency/coupled/coupled-store.js'
import type { IdempotencyStore } from '../../idempotency/leased/idempotency-store.js'
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

const LEASED = ['reserve', 'renew', 'settle'] as const
const COUPLED = ['run', 'consume'] as const

const common = () => ({
  retentionSeconds: numberBetween(1, 31_536_000, 'seconds').default(86_400),
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
})

const leasedSchema = lazy(() =>
  optionsObject({
    store: storeWith<IdempotencyStore>(LEASED),
    ...common(),
    leaseSeconds: numberBetween(1, 3600, 'seconds').default(30),
    maxRunSeconds: numberBetween(1, 86_400, 'seconds').default(3600),
    whenAbandoned: z
      .enum(['refuse', 'rerun'], { error: "must be 'refuse' or 'rerun'" })
      .default('refuse'),
    maxResponseBytes: integerBetween(0, Number.MAX_SAFE_INTEGER).default(262_144),
  }),
)

const coupledSchema = lazy(() =>
  optionsObject({
    store: storeWith<CoupledStore>(COUPLED),
    ...common(),
    maxResponseBytes: integerBetween(0, MAX_COUPLED_BYTES).default(262_144),
  }),
)

interface CommonSettings {
  /** The store, as the dependency whose failures are reported. */
  readonly dependency: Dependency
  readonly retentionMs: number
  readonly maxBytes: number
  readonly operation: string | RequestNamer | undefined
  readonly fingerprint: RequestNamer | undefined
  readonly storedHeaders: ReadonlySet<string>
  readonly runsWithoutKey: boolean
  /** Where used tokens are remembered; `undefined` if a token may be used again. */
  readonly usedTokens: SingleUseStore | undefined
}

/** Checked options for a store that leases keys, in milliseconds. */
export interface LeasedSettings extends CommonSettings {
  readonly kind: 'leased'
  readonly store: IdempotencyStore
  readonly leaseMs: number
  readonly maxRunMs: number
  readonly rerunAbandoned: boolean
}

/** Checked options for a coupled store. */
export interface CoupledSettings extends CommonSettings {
  readonly kind: 'coupled'
  readonly store: CoupledStore
}

/** Checked options. */
export type IdempotencySettings = LeasedSettings | CoupledSettings

const milliseconds = (seconds: number): number => Math.round(seconds * 1000)
const SUBJECT = 'requireIdempotencyKey options'

/** @throws TypeError if an option is unknown, of the wrong type or out of its range. */
export function parseIdempotencyOptions(input: unknown): IdempotencySettings {
  const store = isObject(input) ? input['store'] : undefined
  if (!hasFunctions(store, ['run'])) return leasedSettings(input)
  if (!LEASED.some((name) => hasFunctions(store, [name]))) return coupledSettings(input)
  throw new TypeError(`${SUBJECT}: store must be leased or coupled, and this one is both`)
}

const singleUseFaults = ({ store, singleUse }: Readonly<Record<string, unknown>>) =>
  singleUse === true && !hasFunctions(store, ['consume'])
    ? ['singleUse must not be true unless store has consume']
    : []

function leasedSettings(input: unknown): LeasedSettings {
  const options = parseOptions(SUBJECT, leasedSchema, input, singleUseFaults)
  return {
    kind: 'leased',
    ...commonSettings(options),
    store: options.store,
    leaseMs: milliseconds(options.leaseSeconds),
    maxRunMs: milliseconds(options.maxRunSeconds),
    rerunAbandoned: options.whenAbandoned === 'rerun',
  }
}

function coupledSettings(input: unknown): CoupledSettings {
  const options = parseOptions(SUBJECT, coupledSchema, input)
  return { kind: 'coupled', ...commonSettings(options), store: options.store }
}

const commonSettings = (
  options: z.output<ReturnType<typeof coupledSchema>> | z.output<ReturnType<typeof leasedSchema>>,
): CommonSettings => ({
  dependency: dependencyOf('store', options.store),
  retentionMs: milliseconds(options.retentionSeconds),
  maxBytes: options.maxResponseBytes,
  operation: options.operation,
  fingerprint: options.fingerprint,
  storedHeaders: new Set([...ALWAYS_STORED_HEADERS, ...options.storedHeaders]),
  runsWithoutKey: options.missingKey === 'run',
  usedTokens: options.singleUse ? (options.store as unknown as SingleUseStore) : undefined,
})
