import { timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { textOfParts } from '../../base/digest.js'
import { nonEmptyString, optionsObject } from '../../base/options.js'
import { hash } from '../../base/supported-node.js'
import type { RecipeId } from '../core/import-user.js'
import { coreTenantId } from '../record-validation/normalise.js'

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

const tokens = z
  .custom<TokenList>(
    (value) => typeof value === 'function' || (Array.isArray(value) && value.length > 0),
    { error: 'must be a list of tokens, or a function' },
  )
  .superRefine((list, context) => {
    if (!Array.isArray(list)) return
    list.forEach((token, index) => {
      if (isToken(token)) return
      const message = 'must be 32 or more visible ASCII characters'
      context.addIssue({ code: 'custom', message, path: [index] })
    })
  })

const tenantId = nonEmptyString()
  .transform(coreTenantId)
  .refine((id) => id !== '', { error: 'must be a non-empty string' })

const tenantIds = z
  .array(tenantId, { error: 'must be a list of tenant ids' })
  .min(1, { error: 'must be a list of tenant ids' })

const recipe = optionsObject({
  recipeId: z.enum(['emailpassword', 'thirdparty', 'passwordless'], {
    error: "must be 'emailpassword', 'thirdparty' or 'passwordless'",
  }),
  thirdPartyId: nonEmptyString().optional(),
}).refine((as) => (as.recipeId === 'thirdparty') === (as.thirdPartyId !== undefined), {
  path: ['thirdPartyId'],
  error: "is required with 'thirdparty' and not allowed otherwise",
})

const connection = optionsObject({
  provider: nonEmptyString(),
  connection: nonEmptyString(),
  as: recipe,
})

const connections = z
  .array(connection, { error: 'must be a list of connections' })
  .min(1, { error: 'must be a list of connections' })
  .refine((list) => recipesOf(list).size === list.length, {
    error: 'must not list a connection twice',
  })

/** An object with arbitrary names. */
const byName = <Schema extends z.ZodType>(of: Schema) =>
  z.record(z.string().min(1, { error: 'must be a name' }), of, { error: 'must be an object' })

const issuerSchema = optionsObject({
  tokens,
  organizations: byName(tenantIds).optional(),
  withoutOrganization: tenantIds.optional(),
  connections,
}).refine(
  ({ organizations = {}, withoutOrganization }) =>
    withoutOrganization !== undefined || Object.keys(organizations).length > 0,
  { error: 'must have organizations or withoutOrganization' },
)

type Issuers = Readonly<Record<string, MigrationIssuer>>

export const issuersSchema: z.ZodType<Issuers> = byName(issuerSchema).refine(
  (given) => Object.keys(given).length > 0,
  { error: 'must have at least one issuer' },
)

/** A legacy issuer with its tokens and its allowlist. */
export interface Issuer {
  readonly name: string
  readonly tokens: TokenDigests
  readonly allowed: Allowlist
}

export const issuersOf = (parsed: Issuers): Issuer[] =>
  Object.entries(parsed).map(([name, given]) => ({
    name,
    tokens: tokenDigests(given.tokens),
    allowed: allowlistOf(given),
  }))

/** The connections and organizations of an issuer that may be migrated. */
export interface Allowlist {
  recipeOf(provider: string, connection: string): MigrationRecipe | undefined
  hasOrganization(organizationId: string): boolean
  /** Returns the tenants of the organizations. `undefined`: one is not allowed, or users without any are not. */
  tenantsOf(organizationIds: readonly string[]): readonly string[] | undefined
}

const connectionKey = (provider: string, connection: string): string =>
  textOfParts([provider, connection])

const recipesOf = (
  connections: readonly MigrationConnection[],
): ReadonlyMap<string, MigrationRecipe> =>
  new Map(
    connections.map(({ provider, connection, as }) => [connectionKey(provider, connection), as]),
  )

function allowlistOf({
  connections,
  organizations = {},
  withoutOrganization,
}: MigrationIssuer): Allowlist {
  const recipes = recipesOf(connections)
  const tenants = new Map(Object.entries(organizations))
  return {
    recipeOf: (provider, connection) => recipes.get(connectionKey(provider, connection)),
    hasOrganization: (organizationId) => tenants.has(organizationId),
    tenantsOf(organizationIds) {
      if (organizationIds.length === 0) return withoutOrganization
      const found = organizationIds.map((organizationId) => tenants.get(organizationId))
      if (found.includes(undefined)) return undefined
      return [...new Set(found.flatMap((ids) => ids ?? []))]
    },
  }
}

/** The tokens of an issuer: a list, or a function that is called on each request. */
export type TokenList = readonly string[] | (() => readonly string[] | Promise<readonly string[]>)

/** Returns the digests of the currently valid tokens. */
type TokenDigests = () => Promise<readonly Buffer[]>

/** At least 32 characters; otherwise limited to values that the `Authorization` header can contain. */
const TOKEN = /^[\x21-\x7e]{32,8192}$/

const isToken = (value: unknown): value is string => typeof value === 'string' && TOKEN.test(value)

const digestToken = (token: string): Buffer => hash('sha256', token, 'buffer')

/** Stores only the digests of a list. */
function tokenDigests(tokens: TokenList): TokenDigests {
  if (typeof tokens !== 'function') {
    const digests = Promise.resolve(tokens.map(digestToken))
    return () => digests
  }
  return async () => {
    const given: unknown = await tokens()
    if (!Array.isArray(given) || !given.every(isToken)) {
      throw new TypeError('tokens must return a list of 32 or more visible ASCII characters each')
    }
    return given.map(digestToken)
  }
}

/**
 * Returns the issuer that has the token. Compares all tokens of all issuers, each in constant time.
 *
 * @throws ServiceAuthError if several issuers have the token. Rejects with the error of an issuer's function.
 */
export async function issuerOf(
  issuers: readonly Issuer[],
  token: string,
): Promise<Issuer | undefined> {
  const presented = digestToken(token)
  const lists = await Promise.all(issuers.map(({ tokens }) => tokens()))
  const found = issuers.filter((_, index) => isAmong(lists[index] ?? [], presented))
  if (found.length > 1) {
    throw wrongWiring('migrationEndpoint: several issuers have the same token')
  }
  return found[0]
}

function isAmong(digests: readonly Buffer[], presented: Buffer): boolean {
  let isFound = false
  for (const digest of digests) if (timingSafeEqual(digest, presented)) isFound = true
  return isFound
}
