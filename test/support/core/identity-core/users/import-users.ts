import { addDevices } from './add-devices.js'
import type { Query } from './database.js'
import {
  batchText,
  duplicateKey,
  isStorable,
  nulText,
  STATEMENTS_OF_BATCH,
  STORAGE_EXCEPTION,
  valuesText,
} from './database-text.js'
import { assertLoginsFree, assertOtherTenantsFree, assertPrimaryInfosFree } from './free-logins.js'
import { BlamedFault, ChunkFault, DatabaseFault } from './import-fault.js'
import type { ImportRules } from './import-rules.js'
import type { ImportedUser, ImportSettings } from './imported-user.js'
import { insertAccounts } from './insert-accounts.js'
import { ownId } from './own-id.js'
import { isLinkingEnabled } from './read-user.js'

/**
 * Makes accounts of the users, in the order of the core's steps. Runs in a transaction that the
 * caller rolls back if it throws.
 * @throws {BlamedFault | ChunkFault | DatabaseFault}
 */
export async function importUsers(
  query: Query,
  users: readonly ImportedUser[],
  settings: ImportSettings,
): Promise<void> {
  const { rules, features } = settings
  const linked = users.filter((user) => isLinked(user, rules))
  const checkPrimaries = async () => {
    if (linked.length > 0 && !isLinkingEnabled(features)) throw new ChunkFault(NO_LINKING)
    await assertPrimaryInfosFree(query, linked, rules)
  }
  if (rules.reservesPrimaryInfos) await checkPrimaries()
  await assertLoginsFree(query, users, settings)
  if (!rules.reservesPrimaryInfos) {
    await assertOtherTenantsFree(query, users)
    await checkPrimaries()
  }
  await insertAccounts(query, users, new Set(linked))
  await mapExternalIds(query, users, rules)
  await addDevices(query, users, settings)
  await addMetadata(query, users)
  await addRoles(query, users)
}

const NO_LINKING =
  'E019: Account linking feature is not enabled for this app. Please contact support to enable it.'

/** Whether the user's methods become one primary account. */
function isLinked({ loginMethods }: ImportedUser, { linksWithoutPrimary }: ImportRules): boolean {
  const isOneOfSeveral = linksWithoutPrimary && loginMethods.length > 1
  return isOneOfSeveral || loginMethods.some((method) => method.isPrimary)
}

async function mapExternalIds(
  query: Query,
  users: readonly ImportedUser[],
  rules: ImportRules,
): Promise<void> {
  const mapped = users.filter(({ externalUserId }) => externalUserId !== undefined)
  if (mapped.some(({ externalUserId }) => !isStorable(externalUserId))) {
    const error = `org.postgresql.util.PSQLException: ERROR: ${nulText(2)}`
    throw new DatabaseFault(`${STORAGE_EXCEPTION}: ${error}`)
  }
  const taken = await query<{ external_id: string; is_core_id: boolean }>(
    `select external_id, is_core_id from (
       select id as external_id, true as is_core_id from login_methods
       union all select external_id, false from userid_mapping
     ) as taken where external_id in (select json_array_elements_text($1::json))`,
    [JSON.stringify(mapped.map(({ externalUserId }) => externalUserId))],
  )
  const kindOf = new Map(taken.map((row) => [row.external_id, row.is_core_id]))
  for (const [position, { id, externalUserId = '' }] of mapped.entries()) {
    const isCoreId = kindOf.get(externalUserId)
    // Two ids in a chunk may have differed only by white space, which has been trimmed by now.
    kindOf.set(externalUserId, isCoreId ?? false)
    if (isCoreId === true) throw new BlamedFault(new Map([[id, IS_CORE_ID]]))
    if (isCoreId === undefined) continue
    if (!rules.namesExternalIds) throw takenId(id, externalUserId, position)
    const text = `E031: A user with externalId ${externalUserId} already exists`
    throw new BlamedFault(new Map([[id, text]]))
  }
  await query(
    `insert into userid_mapping (core_id, external_id)
     select core_id, external_id
     from json_to_recordset($1::json) as m (core_id text, external_id text)`,
    [JSON.stringify(mapped.map((user) => ({ core_id: user.id, external_id: ownId(user) })))],
  )
}

const IS_CORE_ID =
  'E030: io.supertokens.pluginInterface.bulkimport.exceptions.BulkImportBatchInsertException: useridmapping errors'

function takenId(coreId: string, externalId: string, position: number): DatabaseFault {
  const columns = '(app_id, supertokens_user_id, external_user_id)'
  const text = batchText({
    entry: position % STATEMENTS_OF_BATCH,
    statement: `INSERT INTO userid_mapping ${columns} VALUES(${valuesText(['public', coreId, externalId])})`,
    error: duplicateKey(
      'userid_mapping_external_user_id_key',
      'app_id, external_user_id',
      `public, ${externalId}`,
    ),
  })
  return new DatabaseFault(`${STORAGE_EXCEPTION}: ${text}`)
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
  assertGivenOnce(roles)
  await query(
    `insert into user_roles (user_id, tenant_id, role)
     select user_id, tenant_id, role
     from json_to_recordset($1::json) as r (user_id text, tenant_id text, role text)
     on conflict do nothing`,
    [JSON.stringify(roles)],
  )
}

interface GivenRole {
  readonly user_id: string
  readonly tenant_id: string
  readonly role: string
}

/** @throws {ChunkFault} for the first role that a user has twice in a tenant */
function assertGivenOnce(roles: readonly GivenRole[]): void {
  const given = new Set<string>()
  for (const [position, { tenant_id, user_id, role }] of roles.entries()) {
    const values = ['public', tenant_id, user_id, role]
    const key = JSON.stringify(values)
    if (given.has(key)) throw roleTwice(values, position)
    given.add(key)
  }
}

function roleTwice(values: readonly string[], position: number): ChunkFault {
  const columns = 'app_id, tenant_id, user_id, role'
  const text = batchText({
    entry: position % STATEMENTS_OF_BATCH,
    statement: `INSERT INTO user_roles(${columns}) VALUES(${valuesText(values)})`,
    error: duplicateKey('user_roles_pkey', columns, values.join(', ')),
  })
  const javaClass = 'io.supertokens.pluginInterface.exceptions.StorageTransactionLogicException'
  return new ChunkFault(`${STORAGE_EXCEPTION}: ${text}`, javaClass)
}

const NO_ROLE =
  'E034: Role does not exist! You need to pre-create the role before assigning it to the user.'
