import type { ImportUser } from './import-user.js'
import type {
  CoreTenant,
  CoreTotpDevice,
  CoreUser,
  RowStatus,
  StagedRow,
  StagedUser,
} from './reply.js'

/** The result of staging. A call stages all of its users or none. */
export type Staging =
  /** A core before 10.1.1 returns no `users`. */
  | { readonly outcome: 'staged'; readonly users?: readonly StagedUser[] }
  /** `index` is the position of the user in the call. */
  | {
      readonly outcome: 'rejected'
      readonly users: readonly { readonly index: number; readonly errors: readonly string[] }[]
    }

/** The result of a direct import. `errors` are the texts of the core, without secrets. */
export type DirectImport =
  /** The account was created. */
  | { readonly outcome: 'created'; readonly user: CoreUser }
  /** The account was not created. */
  | { readonly outcome: 'rejected'; readonly errors: readonly string[] }

/** The value to look up accounts by: one of the three. */
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
 * are returned without their secrets.
 */
export interface CoreClient {
  /** The core's address, if the client exposes it. A journal that was begun with another address is refused. */
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
