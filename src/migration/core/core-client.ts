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
  | { readonly outcome: 'created'; readonly user: CoreUser }
  | { readonly outcome: 'rejected'; readonly errors: readonly string[] }

/** By what accounts are looked up; one of the three. */
export type AccountInfo =
  | { readonly email: string }
  | { readonly phoneNumber: string }
  | { readonly thirdPartyId: string; readonly thirdPartyUserId: string }

/** Ends an operation early; its reason is what the promise rejects with. */
export interface CallOptions {
  readonly signal?: AbortSignal
}

/** Which rows of the staging list are asked for. */
export interface RowQuery {
  readonly status?: RowStatus
  /** 1 to 500; 100 when absent. */
  readonly limit?: number
  readonly paginationToken?: string
}

/**
 * The operations of the core that a migration needs. Each rejects with a `CoreError`. Secrets of rows
 * are gone when they are returned.
 */
export interface CoreClient {
  /** The core's address, where the client tells it: a journal begun with another is refused. */
  readonly baseUrl?: string
  stageUsers(users: readonly ImportUser[], options?: CallOptions): Promise<Staging>
  importUser(user: ImportUser, options?: CallOptions): Promise<DirectImport>
  listRows(
    query?: RowQuery,
    options?: CallOptions,
  ): Promise<{ readonly users: readonly StagedRow[]; readonly nextPaginationToken?: string }>
  /** All pages. */
  rows(status?: RowStatus, options?: CallOptions): AsyncIterable<StagedRow>
  countRows(status?: RowStatus, options?: CallOptions): Promise<number>
  /** At most 500. */
  deleteRows(
    ids: readonly string[],
    options?: CallOptions,
  ): Promise<{ readonly deletedIds: readonly string[]; readonly invalidIds: readonly string[] }>
  coreIdOf(externalUserId: string, options?: CallOptions): Promise<string | undefined>
  /** By external or core id. */
  user(userId: string, options?: CallOptions): Promise<CoreUser | undefined>
  usersWith(
    tenantId: string,
    info: AccountInfo,
    options?: CallOptions,
  ): Promise<readonly CoreUser[]>
  rolesOf(tenantId: string, userId: string, options?: CallOptions): Promise<readonly string[]>
  metadataOf(userId: string, options?: CallOptions): Promise<Readonly<Record<string, unknown>>>
  totpDevicesOf(userId: string, options?: CallOptions): Promise<readonly CoreTotpDevice[]>
  tenants(options?: CallOptions): Promise<readonly CoreTenant[]>
  roles(options?: CallOptions): Promise<readonly string[]>
  /** Of the licence, such as `account_linking`. */
  features(options?: CallOptions): Promise<readonly string[]>
}
