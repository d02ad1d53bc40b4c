import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { readClock } from '../../base/clock.js'
import {
  flag,
  functionOf,
  integerBetween,
  nonEmptyString,
  numberBetween,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import type { KeySet } from '../../verification/key-set/key-set.js'
import type { ServiceAuthPolicy } from '../../verification/policy/policy.js'

/** Options of `createTestIssuer`, for its policy and the default content of its tokens. */
export interface TestIssuerOptions {
  /** `iss`. Default: the address of the key set's server, or `https://issuer.test` without one. */
  readonly issuer?: string | undefined
  /** `aud`. Default: `orders`. */
  readonly audience?: string | undefined
  /** `source`. Default: `microservice`. */
  readonly source?: string | undefined
  /** `token_type`. Default: `service-access`. */
  readonly tokenType?: string | undefined
  /** `sub`, the one approved caller. Default: `billing`. */
  readonly caller?: string | undefined
  /** `permissions`. Default: `orders:read` and `orders:write`. */
  readonly permissions?: readonly string[] | undefined
  /** Seconds from `iat` to `exp`, 1 to 604,800. Default: 300. */
  readonly lifetimeSeconds?: number | undefined
  /** Whether loopback HTTP serves the key set; if not, the policy has `keySet`. Default: `true`. */
  readonly http?: boolean | undefined
  /** The `max-age` of the key set in seconds, 0 to 604,800. Default: 3600. */
  readonly maxAgeSeconds?: number | undefined
  /** The time in milliseconds since the epoch, also for the policy. Default: `Date.now`. */
  readonly clock?: (() => number) | undefined
}

const schema = optionsObject({
  issuer: nonEmptyString().optional(),
  audience: nonEmptyString().default('orders'),
  source: nonEmptyString().default('microservice'),
  tokenType: nonEmptyString().default('service-access'),
  caller: nonEmptyString().default('billing'),
  permissions: z
    .array(nonEmptyString(), { error: 'must be a list of strings' })
    .default(['orders:read', 'orders:write']),
  lifetimeSeconds: numberBetween(1, 604_800, 'seconds').default(300),
  http: flag().default(true),
  maxAgeSeconds: integerBetween(0, 604_800).default(3600),
  clock: functionOf<() => number>().optional(),
})

export interface Settings {
  readonly issuer?: string | undefined
  readonly audience: string
  readonly source: string
  readonly tokenType: string
  readonly caller: string
  readonly permissions: readonly string[]
  readonly lifetimeSeconds: number
  readonly http: boolean
  readonly maxAgeSeconds: number
  readonly clock?: (() => number) | undefined
}

/** @throws TypeError if an option is unknown, of the wrong type or out of range. */
export const parseSettings = (options: TestIssuerOptions): Settings =>
  parseOptions('createTestIssuer options', schema, options)

interface Published {
  readonly url: string
  readonly jwksUri: string
  readonly keySet: KeySet
}

/** Returns a policy that accepts the issuer's tokens, unless an override changes that. */
export function policyOf(
  settings: Settings & Published,
  overrides: Partial<ServiceAuthPolicy> = {},
): ServiceAuthPolicy {
  const { url, audience, source, tokenType, caller, http, jwksUri, keySet, clock } = settings
  const isElsewhere = ['keySet', 'jwksUri', 'apiBasePath'].some((name) =>
    Object.hasOwn(overrides, name),
  )
  return {
    issuer: url,
    audience,
    source,
    tokenType,
    callers: [caller],
    ...(clock !== undefined && { clock }),
    ...(!isElsewhere && (http ? { jwksUri } : { keySet })),
    ...overrides,
  }
}

/** Returns the claims of a token that the policy accepts, with a new `jti` for each call. */
export function claimsOf(url: string, settings: Settings): Record<string, unknown> {
  const { audience, source, tokenType, caller, permissions, lifetimeSeconds } = settings
  const now = Math.floor(readClock(settings.clock ?? Date.now) / 1000)
  return {
    iss: url,
    aud: audience,
    sub: caller,
    source,
    token_type: tokenType,
    permissions,
    iat: now,
    exp: now + lifetimeSeconds,
    jti: randomUUID(),
  }
}
