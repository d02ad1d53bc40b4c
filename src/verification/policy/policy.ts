import { z } from 'zod'
import type { DecisionObserver } from '../../base/decision/decision-event.js'
import {
  flag,
  functionOf,
  nonEmptyString,
  numberBetween,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import type { DeniedLists, LiveDenylist } from '../denylist/live-denylist.js'
import type { KeySet } from '../key-set/key-set.js'
import { sourceOf } from '../key-set/key-set.js'
import { staleIfErrorOption } from '../key-set/remote-key-set.js'
import {
  type CallersOption,
  type Ceilings,
  callersOption,
  unreachablePermissions,
} from './callers.js'
import { type DenylistOption, denylistOption } from './denylist-option.js'
import { type KeySetAddress, keySetAddressFaults, keySetAddressOf } from './key-set-address.js'

/** Requirements on a token and its caller: the options of `serviceAuth`. */
export interface ServiceAuthPolicy {
  /**
   * Exact `iss`: the API domain of the core. Without `jwksUri` or `keySet` an absolute `http(s)` URL
   * without query, fragment or trailing slash.
   */
  readonly issuer: string
  /** Exact `aud`: the name of this receiver. A token whose `aud` is an array is refused. */
  readonly audience: string
  /** Exact `source`. */
  readonly source: string
  /** Exact `token_type`. */
  readonly tokenType: string
  /**
   * The approved `sub` values, at least one. In the record form each caller has a ceiling: permissions
   * in a token beyond it do not count; with an empty one the caller has none.
   */
  readonly callers: CallersOption
  /**
   * Permissions required of every request after this middleware: not an empty list, and all within the
   * ceiling of one caller. Default: none.
   */
  readonly permissions?: readonly string[] | undefined
  /**
   * The key set is at `{issuer}{apiBasePath}/jwt/jwks.json`. Begins with a slash and does not end with
   * one. Default: `/auth`.
   */
  readonly apiBasePath?: string | undefined
  /** The address of the key set, instead of the one made of `issuer` and `apiBasePath`. */
  readonly jwksUri?: string | undefined
  /**
   * A key set made by `remoteKeySet`, shared among several policies. Not together with `jwksUri`, `apiBasePath`,
   * `allowInsecureHttp` or `staleIfErrorSeconds`: it has its own.
   */
  readonly keySet?: KeySet | undefined
  /** Whether a `kid` that starts with `s-`, a static key of the core, may sign. Default: `'refuse'`. */
  readonly staticKeys?: 'refuse' | 'accept' | undefined
  /** Seconds, 0 to 60, granted to `exp`, `nbf` and `iat`. Default: 5. */
  readonly clockToleranceSeconds?: number | undefined
  /** Seconds, 1 to 604,800: the longest life of a token that is accepted. Default: 3600. */
  readonly maxLifetimeSeconds?: number | undefined
  /**
   * Tokens to refuse immediately, cached ones included: fixed, live or a list of both. A live denylist is
   * asked for each request; while one is unknown, requests get the 503. Default: none.
   */
  readonly denylist?: DenylistOption | undefined
  /**
   * How many verified tokens are remembered, 1 to 1,000,000, by digest; `false` for none. `max` also
   * bounds their size: `max` KiB of tokens in all. Default: `{ max: 10000 }`.
   */
  readonly tokenCache?: { readonly max: number } | false | undefined
  /** Allows `http:` key-set addresses beyond loopback. Default: `false`. */
  readonly allowInsecureHttp?: boolean | undefined
  /**
   * Seconds, 0 to 3600: how long the key set stays in use past its `max-age` while it cannot be fetched.
   * Default: 0.
   */
  readonly staleIfErrorSeconds?: number | undefined
  /** Called with every decision of this middleware. */
  readonly onDecision?: DecisionObserver | undefined
  /** The time in milliseconds since the epoch. Default: `Date.now`. */
  readonly clock?: (() => number) | undefined
}

/** A checked policy, with its defaults. */
export interface Policy {
  readonly issuer: string
  readonly audience: string
  readonly source: string
  readonly tokenType: string
  readonly ceilings: Ceilings
  readonly permissions: readonly string[]
  readonly staticKeys: 'refuse' | 'accept'
  readonly clockToleranceSeconds: number
  readonly maxLifetimeSeconds: number
  /** The entries of the fixed denylists. */
  readonly denied: DeniedLists
  readonly liveDenylists: readonly LiveDenylist[]
  readonly tokenCacheMax: number
  readonly onDecision: DecisionObserver | undefined
  readonly clock: () => number
  readonly keySet: KeySetAddress
}

/** The cache allocates room for all its entries up front, so a larger number is a typing error. */
const MAX_CACHED_TOKENS = 1_000_000

const strings = (): z.ZodArray<z.ZodString> =>
  z.array(nonEmptyString(), { error: 'must be a list of strings' })

const policySchema = optionsObject({
  issuer: nonEmptyString(),
  audience: nonEmptyString(),
  source: nonEmptyString(),
  tokenType: nonEmptyString(),
  callers: callersOption,
  permissions: strings().min(1, { error: 'must not be empty' }).default([]),
  apiBasePath: nonEmptyString().optional(),
  jwksUri: nonEmptyString().optional(),
  keySet: z
    .custom<KeySet>((value) => sourceOf(value) !== undefined, {
      error: 'must be a key set made by remoteKeySet',
    })
    .optional(),
  staticKeys: z
    .enum(['refuse', 'accept'], { error: "must be 'refuse' or 'accept'" })
    .default('refuse'),
  clockToleranceSeconds: numberBetween(0, 60, 'seconds').default(5),
  maxLifetimeSeconds: numberBetween(1, 604_800, 'seconds').default(3600),
  denylist: denylistOption.prefault({}),
  tokenCache: z
    .union([z.literal(false), z.strictObject({ max: z.int().min(1).max(MAX_CACHED_TOKENS) })], {
      error: `must be false or { max: an integer from 1 to ${MAX_CACHED_TOKENS} }`,
    })
    .default({ max: 10_000 }),
  allowInsecureHttp: flag().optional(),
  staleIfErrorSeconds: staleIfErrorOption().optional(),
  onDecision: functionOf<DecisionObserver>().optional(),
  clock: functionOf<() => number>().default(() => () => Date.now()),
})

/**
 * Checks a policy when the middleware is made.
 *
 * @throws TypeError naming every faulty path and what it should have been.
 */
export function parsePolicy(input: unknown): Policy {
  const options = parseOptions('serviceAuth policy', policySchema, input, (raw) => [
    ...keySetAddressFaults(raw),
    ...unreachablePermissions(raw),
  ])
  return Object.freeze({
    issuer: options.issuer,
    audience: options.audience,
    source: options.source,
    tokenType: options.tokenType,
    ceilings: options.callers,
    permissions: options.permissions,
    staticKeys: options.staticKeys,
    clockToleranceSeconds: options.clockToleranceSeconds,
    maxLifetimeSeconds: options.maxLifetimeSeconds,
    ...options.denylist,
    tokenCacheMax: options.tokenCache === false ? 0 : options.tokenCache.max,
    onDecision: options.onDecision,
    clock: options.clock,
    keySet: keySetAddressOf(options),
  })
}
