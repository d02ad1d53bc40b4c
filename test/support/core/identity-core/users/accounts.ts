import type { JsonObject } from '../json-input.js'
import type { Query } from './database.js'
import { withoutAbsent } from './java-text.js'

interface MethodRow {
  readonly id: string
  readonly account_id: string
  readonly is_primary: boolean
  readonly account_joined: number
  readonly recipe_id: string
  readonly email: string | null
  readonly phone_number: string | null
  readonly third_party_id: string | null
  readonly third_party_user_id: string | null
  readonly is_verified: boolean
  readonly time_joined: number
  readonly external_id: string | null
  readonly tenant_ids: string[]
}

/** Returns the account of a login method, by external id or the core's id. */
export async function accountIdOf(query: Query, userId: string): Promise<string | undefined> {
  const [row] = await query<{ account_id: string }>(
    `select account_id from login_methods
     where id = coalesce((select core_id from userid_mapping where external_id = $1), $1)`,
    [userId],
  )
  return row?.account_id
}

/** Returns accounts as the core shows them, oldest first. */
export async function readAccounts(query: Query, ids: readonly string[]): Promise<JsonObject[]> {
  // As JSON, because PGlite drops a byte order mark at the beginning of a text.
  const rows = await query<{ method: MethodRow }>(
    `select to_json(method) as method from (
       select m.*, a.is_primary, a.time_joined as account_joined, u.external_id,
         (select json_agg(t.tenant_id order by t.position) from method_tenants t
          where t.method_id = m.id) as tenant_ids
       from accounts a join login_methods m on m.account_id = a.id
         left join userid_mapping u on u.core_id = m.id
       where a.id in (select json_array_elements_text($1::json))
       order by a.time_joined, a.id desc, m.time_joined, m.position
     ) as method`,
    [JSON.stringify(ids)],
  )
  const byAccount = new Map<string, MethodRow[]>()
  for (const { method: row } of rows) {
    byAccount.set(row.account_id, [...(byAccount.get(row.account_id) ?? []), row])
  }
  return [...byAccount.values()].map(toUser)
}

export async function readAccount(query: Query, id: string): Promise<JsonObject | undefined> {
  return (await readAccounts(query, [id]))[0]
}

function toUser(rows: MethodRow[]): JsonObject {
  const [first] = rows
  if (first === undefined) throw new Error('no account is without login methods')
  const { account_id, is_primary, account_joined } = first
  const loginMethods = rows.map(toLoginMethod)
  const thirdParty = loginMethods.flatMap((method) => method.thirdParty ?? [])
  return {
    id: rows.find(({ id }) => id === account_id)?.external_id ?? account_id,
    isPrimaryUser: is_primary,
    tenantIds: distinct(rows.flatMap((row) => row.tenant_ids ?? [])),
    timeJoined: account_joined,
    emails: distinct(rows.flatMap((row) => row.email ?? [])),
    phoneNumbers: distinct(rows.flatMap((row) => row.phone_number ?? [])),
    thirdParty: [...new Map(thirdParty.map((pair) => [JSON.stringify(pair), pair])).values()],
    webauthn: { credentialIds: [] },
    loginMethods,
  }
}

function toLoginMethod(row: MethodRow) {
  return withoutAbsent({
    tenantIds: row.tenant_ids ?? [],
    recipeUserId: row.external_id ?? row.id,
    verified: row.is_verified,
    timeJoined: row.time_joined,
    recipeId: row.recipe_id,
    email: row.email,
    phoneNumber: row.phone_number,
    thirdParty:
      row.third_party_id === null
        ? undefined
        : { id: row.third_party_id, userId: row.third_party_user_id },
  })
}

function distinct(texts: readonly string[]): string[] {
  return [...new Set(texts)]
}

/**
 * Deletes an account and the data under its ids, or only one login method. The account is deleted
 * with its last method.
 */
export async function deleteUser(
  query: Query,
  userId: string,
  withLinkedAccounts: boolean,
): Promise<void> {
  const accountId = await accountIdOf(query, userId)
  if (accountId === undefined) return
  const methods = await query<{ id: string; external_id: string | null }>(
    `select id, external_id from login_methods left join userid_mapping on core_id = id
     where account_id = $1`,
    [accountId],
  )
  const isAsked = ({ id, external_id }: { id: string; external_id: string | null }) =>
    id === userId || external_id === userId
  const gone = withLinkedAccounts ? methods : methods.filter(isAsked)
  const ids = JSON.stringify(gone.flatMap(({ id, external_id }) => [id, external_id ?? id]))
  const isEmptied = gone.length === methods.length
  const statements = [
    'delete from user_roles where user_id in (select json_array_elements_text($1::json))',
    'delete from user_metadata where user_id in (select json_array_elements_text($1::json))',
    'delete from totp_user_devices where user_id in (select json_array_elements_text($1::json))',
    'delete from login_methods where id in (select json_array_elements_text($1::json))',
  ]
  for (const statement of statements) await query(statement, [ids])
  if (isEmptied) await query('delete from accounts where id = $1', [accountId])
}
