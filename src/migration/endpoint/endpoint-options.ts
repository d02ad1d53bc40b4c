import { z } from 'zod'
import type { MigrationDecisionObserver } from '../../base/decision/migration-event.js'
import {
  functionOf,
  hasFunctions,
  integerBetween,
  lazy,
  nonEmptyString,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import type { CoreClient } from '../core/core-client.js'
import type {
  ImportLoginMethod,
  ImportTotpDevice,
  ImportUserRole,
  RecipeId,
} from '../core/import-user.js'
import { coreTenantId } from '../record-validation/normalise.js'
import { USER_WARNING_CODES, type UserWarningCode } from '../record-validation/user-finding.js'
import { FIXED_FIELDS, type LegacyIdentity } from './migration-request.js'

/** The recipe of the core that replaces a legacy connection. */
export interface MigrationRecipe {
  /** The recipe of the logins. */
  readonly recipeId: RecipeId
  /** Required with `thirdparty`, and not allowed otherwise: the provider's id in the core. */
  readonly thirdPartyId?: string | undefined
}

/** A legacy connection whose logins may be migrated. */
export interface MigrationConnection {
  /** The provider's name at the legacy issuer. */
  readonly provider: string
  /** The connection's name at the legacy issuer. */
  readonly connection: string
  /** The recipe of its logins in the core. */
  readonly as: MigrationRecipe
}

/** A legacy issuer whose users may be migrated. */
export interface MigrationIssuer {
  /**
   * The tokens of the issuer's hook, as a list or a function that is called on each request. A token has at least 32
   * characters and belongs to only one issuer.
   */
  readonly tokens: TokenList
  /** Ids of the core's tenants, by legacy organization. */
  readonly organizations?: Readonly<Record<string, readonly string[]>> | undefined
  /** The tenants of users without an organization. Without this option such users are refused. */
  readonly withoutOrganization?: readonly string[] | undefined
  /** Connections whose logins may be migrated, each with its recipe in the core. */
  readonly connections: readonly MigrationConnection[]
}

/** The tokens of an issuer: a list, or a function that is called on each request. */
export type TokenList = readonly string[] | (() => readonly string[] | Promise<readonly string[]>)

/** A login in the legacy store. The allowlist determines its tenants, recipe and provider. */
export interface LegacyLogin
  extends LegacyIdentity,
    Omit<ImportLoginMethod, 'recipeId' | 'tenantIds' | 'thirdPartyId'> {}

/** A legacy user from the backend's own store. Contains secrets. */
export interface LegacyUser {
  /** Organizations of the user. Default: none. */
  readonly organizationIds?: readonly string[] | undefined
  /** All logins of the user. `thirdPartyUserId` is needed if it differs from the `userId` of the identity. */
  readonly identities: readonly LegacyLogin[]
  /** The metadata of the account. Default: none. */
  readonly userMetadata?: Readonly<Record<string, unknown>> | undefined
  /** Roles, only in tenants of the user's organizations. Default: none. */
  readonly userRoles?: readonly ImportUserRole[] | undefined
  /** TOTP devices of the user. Default: none. */
  readonly totpDevices?: readonly ImportTotpDevice[] | undefined
}

/** The argument of `loadUser`. */
export interface LegacyUserQuery {
  /** The name of the issuer whose token the request has. */
  readonly issuer: string
  /** The user that the request names. */
  readonly externalUserId: string
  /** The organization that the request names. */
  readonly organizationId?: string
  /** The logins that the request names. */
  readonly identities: readonly LegacyIdentity[]
  /** Aborts when the request times out. */
  readonly signal: AbortSignal
}

/** Loads a user from the backend's own store. Returns `undefined` or `null` if there is none. */
export type LoadUser = (
  query: LegacyUserQuery,
) => LegacyUser | null | undefined | Promise<LegacyUser | null | undefined>

/**
 * A rate limiter with the interface of `rate-limiter-flexible`. A rejection with a number `msBeforeNext`
 * means that the limit is reached. Any other rejection means that the limiter failed.
 */
export interface MigrationLimiter {
  /** Consumes one point for the key, which is a digest of 24 characters. */
  consume(key: string): Promise<unknown>
}

/** Options of `migrationEndpoint`. */
export interface MigrationEndpointOptions {
  /** A client of the core, such as a `coreClient`. */
  readonly core: CoreClient
  /** Legacy issuers by name. */
  readonly issuers: Readonly<Record<string, MigrationIssuer>>
  /** Loads a user from the backend's own store. */
  readonly loadUser: LoadUser
  /** Rate limiters per token and per user. All instances must share them. */
  readonly limits: { readonly credential: MigrationLimiter; readonly user: MigrationLimiter }
  /** Warnings of `validateUser` to accept. Users with any other warning are refused. Default: none. */
  readonly acceptWarnings?: readonly UserWarningCode[] | undefined
  /** Called with each decision. If it throws or rejects, the error is ignored. */
  readonly onDecision?: MigrationDecisionObserver | undefined
  /** Name of the body member that contains the organization's id. Default: `'organizationId'`. */
  readonly organizationField?: string | undefined
  /** Maximum bytes of the body, 1024 to 1,048,576. Default: 16384. */
  readonly maxBodyBytes?: number | undefined
  /** Time limit in milliseconds, 1 to 60,000. Then the response is a 503, even if work is still in progress. Default: 10000. */
  readonly timeoutMs?: number | undefined
}

/** At least 32 characters; otherwise limited to values that the `Authorization` header can contain. */
const TOKEN = /^[\x21-\x7e]{32,8192}$/

export const areTokens = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((token) => typeof token === 'string' && TOKEN.test(token))

const tenantIds = z
  .array(nonEmptyString().transform(coreTenantId).pipe(nonEmptyString()), {
    error: 'must be a list of tenant ids',
  })
  .min(1, { error: 'must be a list of tenant ids' })

const connection = optionsObject({
  provider: nonEmptyString(),
  connection: nonEmptyString(),
  as: optionsObject({
    recipeId: z.enum(['emailpassword', 'thirdparty', 'passwordless'], {
      error: "must be 'emailpassword', 'thirdparty' or 'passwordless'",
    }),
    thirdPartyId: nonEmptyString().optional(),
  }).refine((as) => (as.recipeId === 'thirdparty') === (as.thirdPartyId !== undefined), {
    path: ['thirdPartyId'],
    error: "is required with 'thirdparty' and not allowed otherwise",
  }),
})

type Connection = Pick<MigrationConnection, 'provider' | 'connection'>

export const isSameConnection = (one: Connection) => (other: Connection) =>
  one.provider === other.provider && one.connection === other.connection

/** An object with arbitrary names. */
const byName = <Schema extends z.ZodType>(of: Schema) =>
  z.record(z.string().min(1, { error: 'must be a name' }), of, { error: 'must be an object' })

const issuer = optionsObject({
  tokens: z.custom<TokenList>(
    (value) => typeof value === 'function' || (areTokens(value) && value.length > 0),
    { error: 'must be a list of tokens of 32 or more visible ASCII characters, or a function' },
  ),
  organizations: byName(tenantIds).optional(),
  withoutOrganization: tenantIds.optional(),
  connections: z
    .array(connection, { error: 'must be a list of connections' })
    .min(1, { error: 'must be a list of connections' })
    .refine((list) => list.every((one) => list.find(isSameConnection(one)) === one), {
      error: 'must not list a connection twice',
    }),
}).refine(
  ({ organizations = {}, withoutOrganization }) =>
    withoutOrganization !== undefined || Object.keys(organizations).length > 0,
  { error: 'must have organizations or withoutOrganization' },
)

const limiter = z.custom<MigrationLimiter>((value) => hasFunctions(value, ['consume']), {
  error: 'must be a limiter with consume',
})

const CORE_FUNCTIONS = ['importUser', 'coreIdOf', 'user', 'usersWith'] as const

const schema = lazy(() =>
  optionsObject({
    core: z.custom<CoreClient>((value) => hasFunctions(value, CORE_FUNCTIONS), {
      error: 'must be a core client',
    }),
    issuers: byName(issuer).refine((given) => Object.keys(given).length > 0, {
      error: 'must have at least one issuer',
    }),
    loadUser: functionOf<LoadUser>(),
    limits: optionsObject({ credential: limiter, user: limiter }),
    acceptWarnings: z
      .array(z.enum(USER_WARNING_CODES, { error: 'must be a warning of validateUser' }), {
        error: 'must be a list of warnings',
      })
      .default([]),
    onDecision: functionOf<MigrationDecisionObserver>().optional(),
    organizationField: nonEmptyString()
      .refine((name) => !FIXED_FIELDS.includes(name), {
        error: 'must not be the name of another member of the body',
      })
      .default('organizationId'),
    maxBodyBytes: integerBetween(1024, 1_048_576).default(16_384),
    timeoutMs: integerBetween(1, 60_000).default(10_000),
  }),
)

export type EndpointSettings = ReturnType<typeof parseEndpointOptions>

/** An issuer with its name. */
export type Issuer = EndpointSettings['issuers'][number]

/** @throws TypeError if an option is missing, unknown, of the wrong type or out of range. */
export function parseEndpointOptions(input: unknown) {
  const options = parseOptions('migrationEndpoint options', schema, input)
  const issuers = Object.entries(options.issuers).map(([name, given]) => ({ name, ...given }))
  return { ...options, issuers }
}
