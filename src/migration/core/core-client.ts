import type { ImportUser } from './import-user.js'
import type {
  CoreTenant,
  CoreTotpDevice,
  CoreUser,
  RowStatus,
  StagedRow,
  StagedUser,
} from './reply.js'

/** What staging came to. A call is all or nothing. */
export type Staging =
  /** `users` is absent from a core before 10.1.1. */
  | { readonly outcome: 'staged'; readonly users?: readonly StagedUser[] }
  /** `index`: where in the call. */
  | {
      readonly outcome: 'rejected'
      readonly users: readonly { readonly index: number; readonly errors: readonly string[] }[]
    }

/** What a direct import came to. `errors` are the core's texts, without secrets. */
export type DirectImport =
  /** The account was made. */
  | { readonly outcome: 'created'; readonly user: CoreUser }
  /** It was not. */
  | { readonly outcome: 'rejected'; readonly errors: readonly string[] }

/** By what accounts are looked up; one of the three. */
export type AccountInfo =
  /** By its e-mail address. */
  | { readonly email: string }
  /** By its phone number. */
  | { readonly phoneNumber: string }
  /** By its login at a provider. */
  | { readonly thirdPartyId: string; readonly thirdPartyUserId: string }

/** Ends an operation early; its reason is what the promise rejects with. */
export interface CallOptions {
  /** Aborts the operation. */
  readonly signal?: AbortSignal
}

/** Which rows of the staging list are asked for. */
export interface RowQuery {
  /** Rows that stand there alone; all when absent. */
  readonly status?: RowStatus
  /** 1 to 500; 100 when absent. */
  readonly limit?: number
  /** The `nextPaginationToken` of the page before. */
  readonly paginationToken?: string
}

/**
 * The operations of the core that a migration needs. Each rejects with a `CoreError`. Secrets of rows
 * are gone when they are returned.
 */
export interface CoreClient {
  /** The core's address, where the client tells it: a journal begun with another is refused. */
  readonly baseUrl?: string
  /** Stages users for the background import (`addBulkImportUsers`), at most 10,000. */
  stageUsers(users: readonly ImportUser[], options?: CallOptions): Promise<Staging>
  /** Imports one user at once (`importOneUserWithBulkImport`). */
  importUser(user: ImportUser, options?: CallOptions): Promise<DirectImport>
  /** One page of the staging list (`getBulkImportUsers`). */
  listRows(
    query?: RowQuery,
    options?: CallOptions,
  ): Promise<{ readonly users: readonly StagedRow[]; readonly nextPaginationToken?: string }>
  /** All pages. */
  rows(status?: RowStatus, options?: CallOptions): AsyncIterable<StagedRow>
  /** How many rows stand there (`countBulkImportUsers`); all when no status is given. */
  countRows(status?: RowStatus, options?: CallOptions): Promise<number>
  /** At most 500. */
  deleteRows(
    ids: readonly string[],
    options?: CallOptions,
  ): Promise<{ readonly deletedIds: readonly string[]; readonly invalidIds: readonly string[] }>
  /** The core's id of the user with this external id; `undefined` when there is none. */
  coreIdOf(externalUserId: string, options?: CallOptions): Promise<string | undefined>
  /** By external or core id. */
  user(userId: string, options?: CallOptions): Promise<CoreUser | undefined>
  /** The accounts of a tenant that have this login. */
  usersWith(
    tenantId: string,
    info: AccountInfo,
    options?: CallOptions,
  ): Promise<readonly CoreUser[]>
  /** The roles that a user has in a tenant. */
  rolesOf(tenantId: string, userId: string, options?: CallOptions): Promise<readonly string[]>
  /** A user's metadata. */
  metadataOf(userId: string, options?: CallOptions): Promise<Readonly<Record<string, unknown>>>
  /** A user's TOTP devices. */
  totpDevicesOf(userId: string, options?: CallOptions): Promise<readonly CoreTotpDevice[]>
  /** All tenants. */
  tenants(options?: CallOptions): Promise<readonly CoreTenant[]>
  /** The names of all roles. */
  roles(options?: CallOptions): Promise<readonly string[]>
  /** Of the licence, such as `account_linking`. */
  features(options?: CallOptions): Promise<readonly string[]>
}
