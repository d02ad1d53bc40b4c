import { textOfParts } from '../../base/digest.js'
import type { RecipeId } from '../core/import-user.js'

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

/** The connections and organizations of an issuer that may be migrated. */
export interface Allowlist {
  recipeOf(provider: string, connection: string): MigrationRecipe | undefined
  hasOrganization(organizationId: string): boolean
  /** Returns the tenants of all the organizations; `undefined` if one of them, or having none, is not allowed. */
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

/** Returns the indexes of connections that repeat an earlier one. */
export function repeatedConnections(connections: readonly MigrationConnection[]): number[] {
  const keys = connections.map(({ provider, connection }) => connectionKey(provider, connection))
  return keys.flatMap((key, index) => (keys.indexOf(key) < index ? [index] : []))
}
