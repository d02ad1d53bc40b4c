import { z } from 'zod'
import { addressFault } from '../../base/fetch.js'
import {
  flag,
  functionOf,
  isObject,
  lazy,
  nonEmptyString,
  numberBetween,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import { type KeySet, withKeySetAddress, withSource } from './key-set.js'
import { lifespanOf } from './key-set-state.js'
import { createRemoteSource } from './remote-source.js'

/** Options of `remoteKeySet`. */
export interface RemoteKeySetOptions {
  /** The address of the JWKS: `https:`, or `http:` on loopback; without user name or password. */
  readonly jwksUri: string
  /** Allows `http:` beyond loopback. Default: `false`. */
  readonly allowInsecureHttp?: boolean | undefined
  /**
   * Seconds, above 0 to 604,800: the set is refreshed in the background at least this often. Less than
   * 5 counts as 5. Default: 300.
   */
  readonly refreshSeconds?: number | undefined
  /**
   * Seconds, above 0 to 604,800: a set is used at most this long after its last fetch. Less than 10
   * counts as 10. Default: 3600.
   */
  readonly maxStaleSeconds?: number | undefined
  /**
   * Seconds, 0 to 3600: how long past its `max-age`, but never past `maxStaleSeconds`, a set stays in use
   * while it cannot be fetched, whatever `must-revalidate` says. Default: 0.
   */
  readonly staleIfErrorSeconds?: number | undefined
  /**
   * Milliseconds, above 0 to 60,000, for an exchange, body included; a failed one is retried once.
   * Default: 3000.
   */
  readonly timeoutMs?: number | undefined
  /**
   * A parsed JWKS document to start with, used for at most `maxStaleSeconds` until the first
   * successful fetch. Without a usable key it counts as absent.
   */
  readonly initial?: object | undefined
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** The time in milliseconds since the epoch. Default: `Date.now`. */
  readonly clock?: (() => number) | undefined
}

const MAX_SECONDS = 604_800
const MAX_STALE_IF_ERROR_SECONDS = 3600
const MAX_TIMEOUT_MS = 60_000

const above0 = (most: number, unit: string): z.ZodNumber => {
  const error = `must be a number of ${unit} above 0, at most ${most}`
  return z.number({ error }).gt(0, { error }).max(most, { error })
}

/** Option of a key set, and of a policy that creates its own key set. */
export const staleIfErrorOption = (): z.ZodNumber =>
  numberBetween(0, MAX_STALE_IF_ERROR_SECONDS, 'seconds')

/** Kept as text, so that later changes to the object have no effect. */
function documentText() {
  const error = 'must be a parsed JWKS document: an object with a list of keys'
  return z
    .custom<object>((value) => isObject(value) && Array.isArray(value['keys']), { error })
    .transform((document, { issues }) => {
      try {
        return JSON.stringify(document)
      } catch {
        issues.push({ code: 'custom', message: error, input: undefined })
        return z.NEVER
      }
    })
}

const schema = lazy(() =>
  optionsObject({
    jwksUri: nonEmptyString(),
    allowInsecureHttp: flag().default(false),
    refreshSeconds: above0(MAX_SECONDS, 'seconds').default(300),
    maxStaleSeconds: above0(MAX_SECONDS, 'seconds').default(3600),
    staleIfErrorSeconds: staleIfErrorOption().default(0),
    timeoutMs: above0(MAX_TIMEOUT_MS, 'milliseconds').default(3000),
    initial: documentText().optional(),
    fetch: functionOf<typeof globalThis.fetch>().optional(),
    clock: functionOf<() => number>().default(() => () => Date.now()),
  }),
)

/**
 * A key set that is fetched over HTTP, refreshed in the background and kept through outages for as
 * long as its `max-age` and `maxStaleSeconds` allow (RFC 7517, RFC 9111). Without
 * `initial`, nothing is fetched before the first request or `ready()`.
 *
 * @throws TypeError if an option is unknown, of the wrong type or out of its range.
 *
 * @example
 * ```ts
 * import { remoteKeySet, serviceAuth } from 'express-service-auth'
 *
 * const issuer = 'https://api.example.com'
 * const keySet = remoteKeySet({ jwksUri: `${issuer}/auth/jwt/jwks.json` })
 * const scheme = { issuer, keySet, source: 'microservice', tokenType: 'service-access' }
 * const orders = serviceAuth({ ...scheme, audience: 'orders', callers: ['billing'] })
 * const stock = serviceAuth({ ...scheme, audience: 'stock', callers: ['orders'] })
 * ```
 */
export function remoteKeySet(options: RemoteKeySetOptions): KeySet {
  const parsed = parseOptions('remoteKeySet options', schema, options, addressFaults)
  const source = createRemoteSource({
    ...parsed,
    fetch: parsed.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    lifespan: lifespanOf(parsed),
  })
  const { ready, health, close } = source
  const keySet = withSource(Object.freeze({ ready, health, close }), source)
  return withKeySetAddress(keySet, parsed.jwksUri)
}

function addressFaults({
  jwksUri,
  allowInsecureHttp,
}: Readonly<Record<string, unknown>>): string[] {
  if (typeof jwksUri !== 'string' || jwksUri === '') return []
  const fault = addressFault(jwksUri, allowInsecureHttp === true)
  return fault === undefined ? [] : [`jwksUri ${fault}`]
}
