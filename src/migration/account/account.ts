import type { CallOptions, CoreClient } from '../core/core-client.js'
import type { ImportUser } from '../core/import-user.js'
import type { CoreTotpDevice, CoreUser } from '../core/reply.js'
import { coreTenantIds } from '../record-validation/tenant-ids.js'

/** What the core holds of an identity, as far as its record has something to compare it with. */
export interface Account {
  readonly coreUserId: string
  readonly user: CoreUser
  /** By tenant. */
  readonly roles: ReadonlyMap<string, readonly string[]>
  readonly metadata: Readonly<Record<string, unknown>>
  readonly totpDevices: readonly CoreTotpDevice[]
}

/** Asks under this id and no other: roles, metadata and devices are kept under the external one. */
export interface AskedIdentity {
  readonly externalUserId: string
  readonly user: ImportUser
}

/**
 * Reads the account of an identity, one look-up after the other; `undefined` where the external id
 * has none.
 *
 * @throws CoreError when the core cannot be asked.
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
