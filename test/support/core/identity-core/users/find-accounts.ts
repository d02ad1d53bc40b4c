import type { Query } from './database.js'

/** The values to look up; absent members are ignored. */
export interface AccountInfo {
  readonly email?: string | undefined
  readonly phoneNumber?: string | undefined
  readonly thirdParty?: { readonly id: string; readonly userId: string } | undefined
}

/** Returns the ids of the accounts that have one (`any`) or all of the values in the tenant. */
export async function findAccounts(
  query: Query,
  tenantId: string,
  { info, match }: { readonly info: AccountInfo; readonly match: 'any' | 'all' },
): Promise<string[]> {
  const { email, phoneNumber, thirdParty } = info
  const asked: [string, string[]][] = []
  if (email !== undefined) asked.push(['m.email = $2', [email]])
  if (phoneNumber !== undefined) asked.push(['m.phone_number = $2', [phoneNumber]])
  if (thirdParty !== undefined) {
    const { id, userId } = thirdParty
    asked.push(['m.third_party_id = $2 and m.third_party_user_id = $3', [id, userId]])
  }
  const found = await Promise.all(
    asked.map(async ([condition, parameters]) => {
      const rows = await query<{ account_id: string }>(
        `select distinct m.account_id from login_methods m
           join method_tenants t on t.method_id = m.id and t.tenant_id = $1
         where ${condition}`,
        [tenantId, ...parameters],
      )
      return new Set(rows.map((row) => row.account_id))
    }),
  )
  const all = [...new Set(found.flatMap((ids) => [...ids]))]
  return match === 'any' ? all : all.filter((id) => found.every((ids) => ids.has(id)))
}

export interface AccountPage {
  readonly order: 'ASC' | 'DESC'
  readonly limit: number
  /** The first account of the page. */
  readonly from?: { readonly id: string; readonly timeJoined: bigint } | undefined
  /** Selects accounts with a login method of one of these recipes; all if it is empty. */
  readonly recipeIds: readonly string[]
}

export interface AccountPlace {
  readonly id: string
  readonly time_joined: number
}

/** Returns the accounts of a tenant by age, and one more than the page holds if there are more. */
export function listAccounts(
  query: Query,
  tenantId: string,
  { order, limit, from, recipeIds }: AccountPage,
): Promise<AccountPlace[]> {
  const beyond = order === 'ASC' ? '>' : '<'
  return query<AccountPlace>(
    `select a.id, a.time_joined from accounts a
     where ${IN_TENANT}
       and ($3::text is null or a.time_joined ${beyond} $4
            or (a.time_joined = $4 and a.id <= $3))
     order by a.time_joined ${order}, a.id desc limit $5`,
    [tenantId, JSON.stringify(recipeIds), from?.id ?? null, from?.timeJoined ?? 0, limit + 1],
  )
}

const IN_TENANT = `exists (
  select 1 from login_methods m join method_tenants t on t.method_id = m.id
  where m.account_id = a.id and ($1::text is null or t.tenant_id = $1)
    and (json_array_length($2::json) = 0
         or m.recipe_id in (select json_array_elements_text($2::json))))`

/** Counts the accounts of all tenants if none is given. */
export async function countAccounts(
  query: Query,
  tenantId: string | undefined,
  recipeIds: readonly string[],
): Promise<number> {
  const [row] = await query<{ count: number }>(
    `select count(*) as count from accounts a where ${IN_TENANT}`,
    [tenantId ?? null, JSON.stringify(recipeIds)],
  )
  return row?.count ?? 0
}
