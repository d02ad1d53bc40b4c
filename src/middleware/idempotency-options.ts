import { z } from 'zod'
import {
  functionOf,
  integerBetween,
  numberBetween,
  optionsObject,
  parseOptions,
  storeWith,
} from '../base/options.js'
import { NEVER_STORED_HEADERS } from '../held-response/result.js'
import type { IdempotencyStore } from '../leased/store.js'
import type { RequestNamer } from './idempotent-request.js'

/** Options of `requireIdempotencyKey`. */
export interface IdempotencyOptions {
  /** Where keys are reserved; all instances of the receiver must share it. */
  readonly store: IdempotencyStore
  /** Seconds, 1 to 31,536,000: how long a record is kept from the end of its run. Default: 86400. */
  readonly retentionSeconds?: number | undefined
  /** Seconds, 1 to 3600: how long a handler is trusted to be alive without renewing. Default: 30. */
  readonly leaseSeconds?: number | undefined
  /** Seconds, 1 to 86,400: how long a handler may run before its first byte. Default: 3600. */
  readonly maxRunSeconds?: number | undefined
  /**
   * What a retry gets when an earlier run ended without a result: `'refuse'` answers 409, `'rerun'`
   * runs the handler again. Default: `'refuse'`.
   */
  readonly whenAbandoned?: 'refuse' | 'rerun' | undefined
  /** Bytes, from 0: the largest body that is kept. Default: 262144. */
  readonly maxResponseBytes?: number | undefined
  /** Names the operation a key is scoped to. Default: method, mount path and route pattern. */
  readonly operation?: string | RequestNamer | undefined
  /** What must be identical in a retry. Default: method, path, query, media type and body. */
  readonly fingerprint?: RequestNamer | undefined
  /** The response headers kept with the result, instead of the default ones. */
  readonly storedHeaders?: readonly string[] | undefined
}

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
/** Without them the body cannot be read. */
const ALWAYS_STORED_HEADERS = ['content-type', 'content-encoding']
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/

const headerName = z
  .string({ error: 'must be a header name' })
  .toLowerCase()
  .regex(FIELD_NAME, { error: 'must be a header name' })
  .refine((name) => !NEVER_STORED_HEADERS.test(name), {
    error: 'must not be set-cookie or a hop-by-hop header',
  })

const schema = optionsObject({
  store: storeWith<IdempotencyStore>(['reserve', 'renew', 'settle']),
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
    .array(headerName, { error: 'must be a list of header names' })
    .default(DEFAULT_STORED_HEADERS),
})

/** Checked options, in milliseconds. */
export interface IdempotencySettings {
  readonly store: IdempotencyStore
  readonly retentionMs: number
  readonly leaseMs: number
  readonly maxRunMs: number
  readonly rerunAbandoned: boolean
  readonly maxBytes: number
  readonly operation: string | RequestNamer | undefined
  readonly fingerprint: RequestNamer | undefined
  readonly storedHeaders: ReadonlySet<string>
}

const milliseconds = (seconds: number): number => Math.round(seconds * 1000)

/** @throws TypeError when an option is unknown, of the wrong type or out of its range. */
export function parseIdempotencyOptions(input: unknown): IdempotencySettings {
  const options = parseOptions('requireIdempotencyKey options', schema, input)
  return {
    store: options.store,
    retentionMs: milliseconds(options.retentionSeconds),
    leaseMs: milliseconds(options.leaseSeconds),
    maxRunMs: milliseconds(options.maxRunSeconds),
    rerunAbandoned: options.whenAbandoned === 'rerun',
    maxBytes: options.maxResponseBytes,
    operation: options.operation,
    fingerprint: options.fingerprint,
    storedHeaders: new Set([...ALWAYS_STORED_HEADERS, ...options.storedHeaders]),
  }
}
