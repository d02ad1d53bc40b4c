import { addDevices } from './add-devices.js'
import type { Query } from './database.js'
import { assertLoginsFree, assertPrimaryInfosFree } from './free-logins.js'
import { BlamedFault, ChunkFault } from './import-fault.js'
import type { ImportedUser, ImportSettings } from './imported-user.js'
import { insertAccounts } from './insert-accounts.js'
import { ownId } from './own-id.js'
import { isLinkingEnabled } from './read-user.js'

/**
 * Makes accounts of the users, in the order of the core's steps. Runs in a transaction that the
 * caller rolls back when it throws.
 * @throws {BlamedFault | ChunkFault}
 */
export async function importUsers(
  query: Query,
  users: readonly ImportedUser[],
  settings: ImportSettings,
): Promise<void> {
  const primaries = users.filter((user) => user.loginMethods.some((method) => method.isPrimary))
  if (primaries.length > 0 && !isLinkingEnabled(settings.features)) throw new ChunkFault(NO_LINKING)
  await assertPrimaryInfosFree(query, primaries)
  await assertLoginsFree(query, users)
  await insertAccounts(query, users)
  await mapExternalIds(query, users)
  await addDevices(query, users, settings)
  await addMetadata(query, users)
  await addRoles(query, users)
}

const NO_LINKING =
  'E019: Account linking feature is not enabled for this app. Please contact support to enable it.'

async function mapExternalIds(query: Query, users: readonly ImportedUser[]): Promise<void> {
  const mapped = users.filter(({ externalUserId }) => externalUserId !== undefined)
  const taken = await query<{ external_id: string; is_core_id: boolean }>(
    `select external_id, is_core_id from (
       select id as external_id, true as is_core_id from login_methods
       union all select external_id, false from userid_mapping
     ) as taken where external_id in (select json_array_elements_text($1::json))`,
    [JSON.stringify(mapped.map(({ externalUserId }) => externalUserId))],
  )
  const kindOf = new Map(taken.map((row) => [row.external_id, row.is_core_id]))
  for (const { id, externalUserId = '' } of mapped) {
    const isCoreId = kindOf.get(externalUserId)
    // Two of a chunk may differ by white space only, which is gone by now.
    kindOf.set(externalUserId, isCoreId ?? false)
    if (isCoreId === undefined) continue
    const text = isCoreId
      ? 'E030: io.supertokens.pluginInterface.bulkimport.exceptions.BulkImportBatchInsertException: useridmapping errors'
      : `E031: A user with externalId ${externalUserId} already exists`
    throw new BlamedFault(new Map([[id, text]]))
  }
  await query(
    `insert into userid_mapping (core_id, external_id)
     select core_id, external_id
     from json_to_recordset($1::json) as m (core_id text, external_id text)`,
    [JSON.stringify(mapped.map((user) => ({ core_id: user.id, external_id: ownId(user) })))],
  )
}

async function addMetadata(query: Query, users: readonly ImportedUser[]): Promise<void> {
  const described = users.flatMap((user) =>
    user.userMetadata === undefined
      ? []
      : [{ user_id: ownId(user), user_metadata: JSON.stringify(user.userMetadata) }],
  )
  if (described.length === 0) return
  await query(
    `insert into user_metadata (user_id, user_metadata)
     select user_id, user_metadata
     from json_to_recordset($1::json) as m (user_id text, user_metadata text)
     on conflict (user_id) do update set user_metadata = excluded.user_metadata`,
    [JSON.stringify(described)],
  )
}

async function addRoles(query: Query, users: readonly ImportedUser[]): Promise<void> {
  const roles = users.flatMap((user) =>
    (user.userRoles ?? []).flatMap(({ role, tenantIds }) =>
      tenantIds.map((tenantId) => ({
        id: user.id,
        user_id: ownId(user),
        tenant_id: tenantId,
        role,
      })),
    ),
  )
  if (roles.length === 0) return
  const known = new Set(
    (await query<{ role: string }>('select role from roles')).map(({ role }) => role),
  )
  const unknown = roles.find(({ role }) => !known.has(role))
  if (unknown !== undefined) throw new BlamedFault(new Map([[unknown.id, NO_ROLE]]))
  await query(
    `insert into user_roles (user_id, tenant_id, role)
     select user_id, tenant_id, role
     from json_to_recordset($1::json) as r (user_id text, tenant_id text, role text)
     on conflict do nothing`,
    [JSON.stringify(roles)],
  )
}

const NO_ROLE =
  'E034: Role does not exist! You need to pre-create the role before assigning it to the user.'
