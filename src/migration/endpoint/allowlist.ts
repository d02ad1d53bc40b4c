import { textOfParts } from '../../base/digest.js'
import type { RecipeId } from '../core/import-user.js'

/** The core's counterpart of a legacy connection. */
export interface MigrationRecipe {
  /** What its logins are logins of. */
  readonly recipeId: RecipeId
  /** With `thirdparty`, and there alone: the provider's id in the core. */
  readonly thirdPartyId?: string | undefined
}

/** A legacy connection whose logins may come over. */
export interface MigrationConnection {
  /** The provider's name at the legacy issuer. */
  readonly provider: string
  /** The connection's name at the legacy issuer. */
  readonly connection: string
  /** What its logins become in the core. */
  readonly as: MigrationRecipe
}

/** What an issuer's users may become. */
export interface Allowlist {
  recipeOf(provider: string, connection: string): MigrationRecipe | undefined
  hasOrganization(organizationId: string): boolean
  /** Of all the organizations together; `undefined` when one of them is not allowed, or none is. */
  tenantsOf(organizationIds: readonly string[]): readonly string[] | undefined
}

interface AllowlistOptions {
  readonly connections: readonly MigrationConnection[]
  readonly organizations?: Readonly<Record<string, readonly string[]>> | undefined
  readonly withoutOrganization?: readonly string[] | undefined
}

const connectionKey = (provider: string, connection: string): string =>
  textOfParts([provider, connection])

export function allowlistOf({
  connections,
  organizations = {},
  withoutOrganization,
}: AllowlistOptions): Allowlist {
  const recipes = new Map(
    connections.map(({ provider, connection, as }) => [connectionKey(provider, connection), as]),
  )
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

/** Places of connections that stand twice in a list. */
export function repeatedConnections(connections: readonly MigrationConnection[]): number[] {
  const keys = connections.map(({ provider, connection }) => connectionKey(provider, connection))
  return keys.flatMap((key, index) => (keys.indexOf(key) < index ? [index] : []))
}
