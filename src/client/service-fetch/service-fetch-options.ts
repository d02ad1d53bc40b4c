import { z } from 'zod'
import { addressFault } from '../../base/fetch.js'
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
import type { TokenSource } from '../token-source/token-source.js'
import type { CallObserver } from './call-report.js'

/** Options of `serviceFetch`. */
export interface ServiceFetchOptions {
  /**
   * The 1 to 16 origins that may be called, such as `https://orders.example.com`. A server that
   * receives the token could forward it to the token's audience.
   */
  readonly origins: readonly string[]
  /** Milliseconds for the whole call with all attempts and waits, 100 to 600,000. Default: 30,000. */
  readonly deadlineMs?: number | undefined
  /** Milliseconds for one attempt with its response body, 100 to 600,000. Default: 10,000. */
  readonly attemptTimeoutMs?: number | undefined
  /** Maximum number of attempts, 1 to 10. Default: 4. */
  readonly maxAttempts?: number | undefined
  /**
   * `'auto'` adds an `Idempotency-Key` to each write that has none, so that it may be repeated. Every
   * write route that this fetch calls must then use `requireIdempotencyKey`: if a route ignores the
   * key, a repeated write happens twice. Default: `false`.
   */
  readonly idempotencyKey?: 'auto' | false | undefined
  /** Maximum size of a request body in bytes, from 0. Default: 1,048,576. */
  readonly maxBodyBytes?: number | undefined
  /** Maximum size in bytes, from 0, of a response body read within its attempt. Default: 1,048,576. */
  readonly maxResponseBytes?: number | undefined
  /** Called with a report when a call has ended. */
  readonly onCall?: CallObserver | undefined
  /** Allows `http:` for origins other than loopback. Default: `false`. */
  readonly allowInsecureHttp?: boolean | undefined
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

const MIN_MS = 100
const MAX_MS = 600_000
const MEBIBYTE = 1024 * 1024

const duration = () => numberBetween(MIN_MS, MAX_MS, 'ms')
const size = () => integerBetween(0, Number.MAX_SAFE_INTEGER)
const ORIGINS = 'must be a list of 1 to 16 origins'
const ORIGIN = 'must be an origin such as https://orders.example.com'

const schema = lazy(() =>
  optionsObject({
    origins: z
      .array(z.string({ error: ORIGIN }), { error: ORIGINS })
      .min(1, { error: ORIGINS })
      .max(16, { error: ORIGINS }),
    deadlineMs: duration().default(30_000),
    attemptTimeoutMs: duration().default(10_000),
    maxAttempts: integerBetween(1, 10).default(4),
    idempotencyKey: z
      .union([z.literal('auto'), z.literal(false)], { error: "must be 'auto' or false" })
      .default(false),
    maxBodyBytes: size().default(MEBIBYTE),
    maxResponseBytes: size().default(MEBIBYTE),
    onCall: functionOf<CallObserver>().optional(),
    allowInsecureHttp: flag().default(false),
    fetch: functionOf<typeof globalThis.fetch>().optional(),
  }),
)

/** The parsed options of a `serviceFetch`. */
export interface FetchSettings {
  readonly source: Pick<TokenSource, 'token' | 'proof'>
  readonly origins: ReadonlySet<string>
  readonly deadlineMs: number
  readonly attemptTimeoutMs: number
  readonly maxAttempts: number
  readonly idempotencyKey: 'auto' | false
  readonly maxBodyBytes: number
  readonly maxResponseBytes: number
  readonly onCall?: CallObserver | undefined
  readonly fetch: typeof globalThis.fetch
}

/** @throws TypeError that names every problem. */
export function fetchSettings(
  source: Pick<TokenSource, 'token' | 'proof'>,
  options: ServiceFetchOptions,
): FetchSettings {
  if (!hasFunctions(source, ['token'])) {
    throw new TypeError('serviceFetch: the source must be a token source with token')
  }
  if (source.proof !== undefined && typeof source.proof !== 'function') {
    throw new TypeError('serviceFetch: proof of the source must be a function')
  }
  const parsed = parseOptions('serviceFetch', schema, options, originFaults)
  return {
    ...parsed,
    source,
    origins: new Set(parsed.origins.map((origin) => new URL(origin).origin)),
    fetch: parsed.fetch ?? ((input, init) => globalThis.fetch(input, init)),
  }
}

function originFaults(input: Readonly<Record<string, unknown>>): string[] {
  const { origins, allowInsecureHttp } = input
  if (!Array.isArray(origins)) return []
  return origins.flatMap((origin, index) => {
    const fault = typeof origin === 'string' ? originFault(origin, allowInsecureHttp === true) : ''
    return fault ? [`origins[${index}] ${fault}`] : []
  })
}

/** Does not repeat the value, which may hold a secret if it is not an origin. */
function originFault(origin: string, allowInsecureHttp: boolean): string | undefined {
  const fault = addressFault(origin, allowInsecureHttp)
  if (fault !== undefined) return fault
  const url = new URL(origin)
  if (url.href === `${url.origin}/`) return undefined
  return ORIGIN
}
