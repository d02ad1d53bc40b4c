import type { JsonObject } from './input.js'
import type { CoreVersion } from './interface-version.js'

/** A user as the core stores it, with the members in the core's order. */
export interface ImportedUser {
  /** The id of the primary login method, and of the row. */
  readonly id: string
  readonly externalUserId?: string | undefined
  readonly userMetadata?: JsonObject | undefined
  readonly userRoles?: readonly UserRole[] | undefined
  readonly totpDevices?: readonly TotpDevice[] | undefined
  readonly loginMethods: readonly LoginMethod[]
}

/** A login method, normalised, with the members in the order in which the core stores them. */
export interface LoginMethod {
  readonly tenantIds: readonly string[]
  readonly isVerified: boolean
  readonly isPrimary: boolean
  readonly timeJoinedInMSSinceEpoch: number
  readonly recipeId: string
  readonly email?: string | undefined
  readonly passwordHash?: string | undefined
  readonly hashingAlgorithm?: string | undefined
  readonly plainTextPassword?: string | undefined
  readonly thirdPartyId?: string | undefined
  readonly thirdPartyUserId?: string | undefined
  readonly phoneNumber?: string | undefined
  /** The id in the core. */
  readonly superTokensUserId: string
}

export interface UserRole {
  readonly role: string
  readonly tenantIds: readonly string[]
}

export interface TotpDevice {
  readonly secretKey: string
  /** In seconds. */
  readonly period: number
  readonly skew: number
  readonly deviceName?: string | undefined
}

/** A feature of the licence, in the core's spelling. */
export type Feature = 'account_linking' | 'multi_tenancy' | 'mfa'

/** The default features of the licence: all that matter to a migration. */
export const ALL_FEATURES: readonly Feature[] = ['account_linking', 'multi_tenancy', 'mfa']

/** Either of the two features enables it. */
export function isLinkingEnabled(features: ReadonlySet<Feature>): boolean {
  return features.has('account_linking') || features.has('mfa')
}

/** The id under which the core keeps roles, metadata and devices. */
export function ownId(user: ImportedUser): string {
  return user.externalUserId ?? user.id
}

export interface ReadContext extends ImportSettings {
  readonly tenants: ReadonlySet<string>
  readonly roles: ReadonlySet<string>
  readonly hasFirebaseSignerKey: boolean
  /** Whether the user comes from a row, whose login methods have ids; otherwise each gets a new one. */
  readonly areStored: boolean
  /** The ids of one request, or of one chunk of the job; grows as users are read. */
  readonly externalIds: Set<string>
}

/** The settings of an import, besides the tables. */
export interface ImportSettings {
  readonly rules: ImportRules
  readonly features: ReadonlySet<Feature>
  readonly nowMs: number
}

/** The differences between versions of the core in how they import users. */
export interface ImportRules {
  /** Links several methods of a user without a primary one, as if the oldest were primary. */
  readonly linksWithoutPrimary: boolean
  /** Checks primary accounts before it inserts logins, also against others of the chunk. */
  readonly reservesPrimaryInfos: boolean
  /** For these recipes, a taken login blames a user. For others, it counts as a fault of the database. */
  readonly namedRecipes: readonly string[]
  /** The text of direct import for such a fault: the error of the database, or the word `translated`. */
  readonly unnamedText: 'database' | 'translated'
  /** Whether a taken external id blames a user. */
  readonly namesExternalIds: boolean
  /** Whether an error shows the members of a login method, or only its class. */
  readonly printsMethods: boolean
  /** Tries a chunk again in the same run if some of its rows have failed. */
  readonly retriesInRun: boolean
}

const BEFORE_12 = {
  linksWithoutPrimary: true,
  reservesPrimaryInfos: false,
  namesExternalIds: false,
  retriesInRun: false,
}

export const IMPORT_RULES: Readonly<Record<CoreVersion, ImportRules>> = {
  '10.1': {
    ...BEFORE_12,
    namedRecipes: ['emailpassword'],
    unnamedText: 'database',
    printsMethods: false,
  },
  '11.4': {
    ...BEFORE_12,
    namedRecipes: ['emailpassword', 'passwordless'],
    unnamedText: 'translated',
    printsMethods: true,
  },
  '12.1': {
    linksWithoutPrimary: false,
    reservesPrimaryInfos: true,
    namedRecipes: ['emailpassword', 'thirdparty', 'passwordless'],
    unnamedText: 'translated',
    printsMethods: true,
    namesExternalIds: true,
    retriesInRun: true,
  },
}
