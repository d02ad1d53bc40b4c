import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { readClock } from '../../base/clock.js'
import {
  flag,
  functionOf,
  integerBetween,
  lazy,
  nonEmptyString,
  numberBetween,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import type { KeySet } from '../../verification/key-set/key-set.js'
import type { OAuth2Policy, ServiceAuthPolicy } from '../../verification/policy/policy-options.js'

/** Options of `createTestIssuer`, for its policy and the default content of its tokens. */
export interface TestIssuerOptions {
  /**
   * The kind of its tokens: `'service'` as the core signs them, or `'oauth2'` for access tokens of RFC
   * 9068 with the permissions in `scope`. Default: `'service'`.
   */
  readonly tokens?: 'service' | 'oauth2' | undefined
  /** `iss`. Default: the address of the key set's server, or `https://issuer.test` without one. */
  readonly issuer?: string | undefined
  /** `aud`. Default: `orders`. */
  readonly audience?: string | undefined
  /** `source`, of service tokens only. Default: `microservice`. */
  readonly source?: string | undefined
  /** `token_type`, of service tokens only. Default: `service-access`. */
  readonly tokenType?: string | undefined
  /** `sub`, the one approved caller. Default: `billing`. */
  readonly caller?: string | undefined
  /** `permissions`, or the names in `scope`. Default: `orders:read` and `orders:write`. */
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

const schema = lazy(() =>
  optionsObject({
    tokens: z
      .enum(['service', 'oauth2'], { error: "must be 'service' or 'oauth2'" })
      .default('service'),
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
  }),
)

type IssuerSettings = ReturnType<typeof parseIssuerSettings>

/** @throws TypeError if an option is unknown, of the wrong type or out of range. */
export const parseIssuerSettings = (options: TestIssuerOptions) =>
  parseOptions('createTestIssuer options', schema, options)

interface Published {
  readonly url: string
  readonly jwksUri: string
  readonly keySet: KeySet
}

/** Returns a policy that accepts the issuer's tokens, unless an override changes that. */
export function policyOf(
  settings: IssuerSettings & Published,
  overrides: Partial<ServiceAuthPolicy | OAuth2Policy> = {},
): ServiceAuthPolicy | OAuth2Policy {
  const { url, audience, caller, http, jwksUri, keySet, clock } = settings
  const overridesKeySet = ['keySet', 'jwksUri', 'apiBasePath'].some((name) =>
    Object.hasOwn(overrides, name),
  )
  const { tokens, source, tokenType } = settings
  const policy = {
    issuer: url,
    audience,
    ...(tokens === 'oauth2'
      ? { tokens, permissionsClaim: 'scope' as const }
      : { source, tokenType }),
    callers: [caller],
    ...(clock !== undefined && { clock }),
    ...(!overridesKeySet && (http ? { jwksUri } : { keySet })),
    ...overrides,
  }
  return policy as ServiceAuthPolicy | OAuth2Policy
}

/** Returns the claims of a token that the policy accepts, with a new `jti` for each call. */
export function claimsOf(url: string, settings: IssuerSettings): Record<string, unknown> {
  const { audience, caller, lifetimeSeconds } = settings
  const now = Math.floor(readClock(settings.clock ?? Date.now) / 1000)
  return {
    iss: url,
    aud: audience,
    sub: caller,
    ...kindClaims(settings),
    iat: now,
    exp: now + lifetimeSeconds,
    jti: randomUUID(),
  }
}

function kindClaims(settings: IssuerSettings): Record<string, unknown> {
  const { tokens, source, tokenType, caller, permissions } = settings
  return tokens === 'oauth2'
    ? { client_id: caller, scope: permissions.join(' ') }
    : { source, token_type: tokenType, permissions }
}
