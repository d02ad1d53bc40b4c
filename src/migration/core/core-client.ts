import type { ImportLoginMethod, ImportTotpDevice, ImportUser, RecipeId } from './import-user.js'

/** The result of staging. A call stages all of its users or none. */
export type Staging =
  /** A core before 10.1.1 returns no `users`. */
  | { readonly outcome: 'staged'; readonly users?: readonly StagedUser[] }
  /** `index` is the position of the user in the call. */
  | {
      readonly outcome: 'rejected'
      readonly users: readonly { readonly index: number; readonly errors: readonly string[] }[]
    }

/** The result of a direct import. `errors` are the texts of the core, without values of the record. */
export type DirectImport =
  /** The account was created. */
  | { readonly outcome: 'created'; readonly user: CoreUser }
  /** The account was not created. */
  | { readonly outcome: 'rejected'; readonly errors: readonly string[] }

/** A login to look up accounts by: an e-mail address, a phone number or a third-party login. */
export type AccountInfo =
  /** An e-mail address. */
  | { readonly email: string }
  /** A phone number. */
  | { readonly phoneNumber: string }
  /** A third-party login. */
  | { readonly thirdPartyId: string; readonly thirdPartyUserId: string }

/** Options of each operation. */
export interface CallOptions {
  /** Aborting it ends the operation early. The promise then rejects with its reason. */
  readonly signal?: AbortSignal
}

/** Selects rows of the staging list. */
export interface RowQuery {
  /** Only rows with this status. Default: all rows. */
  readonly status?: RowStatus
  /** Maximum number of rows, 1 to 500. Default: 100. */
  readonly limit?: number
  /** The `nextPaginationToken` of the previous page. */
  readonly paginationToken?: string
}

/**
 * The operations of the core that a migration needs. Each rejects with a `CoreError` if it fails. Rows
 * are returned without their secrets, and texts of the core without values of records.
 */
export interface CoreClient {
  /** The core's address, if the client exposes it. `openMigration` refuses a journal begun with another address. */
  readonly baseUrl?: string
  /** Stages users, at most 10,000, for the background import (`addBulkImportUsers`). */
  stageUsers(users: readonly ImportUser[], options?: CallOptions): Promise<Staging>
  /** Imports one user directly (`importOneUserWithBulkImport`). */
  importUser(user: ImportUser, options?: CallOptions): Promise<DirectImport>
  /** Returns one page of the staging list (`getBulkImportUsers`). */
  listRows(
    query?: RowQuery,
    options?: CallOptions,
  ): Promise<{ readonly users: readonly StagedRow[]; readonly nextPaginationToken?: string }>
  /** Yields the rows of all pages. */
  rows(status?: RowStatus, options?: CallOptions): AsyncIterable<StagedRow>
  /** Counts the rows with a status, or all rows (`countBulkImportUsers`). */
  countRows(status?: RowStatus, options?: CallOptions): Promise<number>
  /** Deletes rows, at most 500. */
  deleteRows(
    ids: readonly string[],
    options?: CallOptions,
  ): Promise<{ readonly deletedIds: readonly string[]; readonly invalidIds: readonly string[] }>
  /** Returns the core's id of the user with this external id; `undefined` if there is none. */
  coreIdOf(externalUserId: string, options?: CallOptions): Promise<string | undefined>
  /** Returns the account with this external id or id of the core; `undefined` if there is none. */
  user(userId: string, options?: CallOptions): Promise<CoreUser | undefined>
  /** Returns the accounts of a tenant that have this login. */
  usersWith(
    tenantId: string,
    info: AccountInfo,
    options?: CallOptions,
  ): Promise<readonly CoreUser[]>
  /** Returns the roles of a user in a tenant. */
  rolesOf(tenantId: string, userId: string, options?: CallOptions): Promise<readonly string[]>
  /** Returns the metadata of a user. */
  metadataOf(userId: string, options?: CallOptions): Promise<Readonly<Record<string, unknown>>>
  /** Returns the TOTP devices of a user. */
  totpDevicesOf(userId: string, options?: CallOptions): Promise<readonly CoreTotpDevice[]>
  /** Returns all tenants. */
  tenants(options?: CallOptions): Promise<readonly CoreTenant[]>
  /** Returns the names of all roles. */
  roles(options?: CallOptions): Promise<readonly string[]>
  /** Returns the features of the licence, such as `account_linking`. */
  features(options?: CallOptions): Promise<readonly string[]>
}

/** A staged user, as a core of version 10.1.1 or later returns it. */
export interface StagedUser {
  /** The external id, or the row's id if there is none. */
  readonly userId: string
  /** The login methods as the core staged them. */
  readonly loginMethods: readonly {
    readonly recipeId: RecipeId
    /** The core's id, which the account will have. */
    readonly userId: string
    readonly tenants: readonly string[]
    readonly email?: string | null
    readonly phoneNumber?: string | null
    readonly thirdpartyId?: string
    readonly thirdpartyUserId?: string
  }[]
}

/** The status of a staged row: not picked up yet, being imported, or failed. */
export type RowStatus = 'NEW' | 'PROCESSING' | 'FAILED'

/** A row of the staging list, without its secrets. */
export interface StagedRow extends Omit<ImportUser, 'loginMethods' | 'totpDevices'> {
  /** The row's id, for `deleteRows`. */
  readonly id: string
  /** The status of the row. */
  readonly status: RowStatus
  /** Why the row failed, in the words of the core, without values of the row. */
  readonly errorMessage?: string
  /** The core's id that the account will have. */
  readonly primaryUserId?: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** Milliseconds since the epoch. */
  readonly updatedAt: number
  /** The login methods, without passwords. */
  readonly loginMethods: readonly (Omit<ImportLoginMethod, 'passwordHash' | 'plainTextPassword'> & {
    readonly superTokensUserId?: string
  })[]
  /** The TOTP devices, without keys. */
  readonly totpDevices?: readonly Omit<ImportTotpDevice, 'secretKey'>[]
}

/** A login method of an account. */
export interface CoreLoginMethod {
  /** The recipe, such as `emailpassword`. */
  readonly recipeId: string
  /** The external id, for the primary method of a user that has one; otherwise the core's id. */
  readonly recipeUserId: string
  /** The tenants in which it works. */
  readonly tenantIds: readonly string[]
  /** Whether its e-mail address or phone number is verified. */
  readonly verified: boolean
  /** Milliseconds since the epoch. */
  readonly timeJoined: number
  /** Its e-mail address, if it has one. */
  readonly email?: string
  /** Its phone number, if it has one. */
  readonly phoneNumber?: string
  /** The provider's id in the core, and the user's id there. */
  readonly thirdParty?: { readonly id: string; readonly userId: string }
}

/** An account as the core returns it. */
export interface CoreUser {
  /** The external id if the account has one, otherwise the core's id. */
  readonly id: string
  /** Whether login methods may be linked to it. */
  readonly isPrimaryUser: boolean
  /** The tenants of all login methods. */
  readonly tenantIds: readonly string[]
  /** `timeJoined` of the oldest login method, in milliseconds since the epoch. */
  readonly timeJoined: number
  /** The e-mail addresses of all login methods. */
  readonly emails: readonly string[]
  /** The phone numbers of all login methods. */
  readonly phoneNumbers: readonly string[]
  /** The third-party logins of all login methods. */
  readonly thirdParty: readonly { readonly id: string; readonly userId: string }[]
  /** Its login methods. */
  readonly loginMethods: readonly CoreLoginMethod[]
}

/** A TOTP device of an account. The core does not return its key. */
export interface CoreTotpDevice {
  /** The name of the device, unique for the user. */
  readonly name: string
  /** Validity of a code in seconds. */
  readonly period: number
  /** Number of periods by which a code may be early or late. */
  readonly skew: number
  /** Whether a code of the device has been accepted. */
  readonly verified: boolean
}

/** A tenant of the core. */
export interface CoreTenant {
  /** Its id, such as `public`. */
  readonly tenantId: string
}
