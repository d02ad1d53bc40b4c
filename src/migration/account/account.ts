import type { CallOptions, CoreClient } from '../core/core-client.js'
import type { ImportUser } from '../core/import-user.js'
import type { CoreTotpDevice, CoreUser } from '../core/reply.js'
import { coreTenantIds } from '../record-validation/tenant-ids.js'

/** The core's data of an account, as far as the record has values to compare it with. */
export interface Account {
  readonly coreUserId: string
  readonly user: CoreUser
  /** The roles of each tenant. */
  readonly roles: ReadonlyMap<string, readonly string[]>
  readonly metadata: Readonly<Record<string, unknown>>
  readonly totpDevices: readonly CoreTotpDevice[]
}

/** A user with its external id, under which the core stores roles, metadata and TOTP devices. */
export interface AskedIdentity {
  readonly externalUserId: string
  readonly user: ImportUser
}

/**
 * Reads the account of an identity, one look-up after another. Returns `undefined` if the external id
 * has no account.
 *
 * @throws CoreError if a call of the core fails.
 */
export async function readAccount(
  core: CoreClient,
  { externalUserId, user }: AskedIdentity,
  options: CallOptions = {},
): Promise<Account | undefined> {
  const coreUserId = await core.coreIdOf(externalUserId, options)
  if (coreUserId === undefined) return undefined
  const found = await core.user(coreUserId, options)
  if (found === undefined) return undefined
  const roles = new Map<string, readonly string[]>()
  for (const tenantId of roleTenantsOf(user)) {
    roles.set(tenantId, await core.rolesOf(tenantId, externalUserId, options))
  }
  const hasMetadata = Object.keys(user.userMetadata ?? {}).length > 0
  const hasDevices = (user.totpDevices ?? []).length > 0
  return {
    coreUserId,
    user: found,
    roles,
    metadata: hasMetadata ? await core.metadataOf(externalUserId, options) : {},
    totpDevices: hasDevices ? await core.totpDevicesOf(externalUserId, options) : [],
  }
}

const roleTenantsOf = ({ userRoles = [] }: ImportUser): ReadonlySet<string> =>
  new Set(userRoles.flatMap(({ tenantIds }) => coreTenantIds(tenantIds)))
