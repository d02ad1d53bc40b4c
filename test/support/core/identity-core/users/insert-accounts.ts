import type { Query } from './database.js'
import { heldBy, loginsOf, primaryInfosOf } from './held-infos.js'
import type { ImportedUser, LoginMethod } from './imported-user.js'
import { hashPassword } from './plain-password.js'

/**
 * Inserts accounts with their login methods. The methods of a linked user become one account;
 * otherwise each becomes an account of its own.
 */
export async function insertAccounts(
  query: Query,
  users: readonly ImportedUser[],
  linked: ReadonlySet<ImportedUser>,
): Promise<void> {
  const accounts = users.flatMap((user) => accountsOf(user, linked.has(user)))
  const methods = accounts.flatMap(({ id, methods }) =>
    methods.map((method, position) => ({ ...toRow(method), account_id: id, position })),
  )
  const all = accounts.flatMap((account) => account.methods)
  await insert(query, {
    into: 'accounts (id, is_primary, time_joined)',
    as: 'id text, is_primary boolean, time_joined bigint',
    rows: accounts.map(({ id, is_primary, time_joined }) => ({ id, is_primary, time_joined })),
  })
  await insert(query, {
    into: `login_methods (${METHOD_COLUMNS})`,
    as: `id text, account_id text, position integer, recipe_id text, email text, phone_number text,
      third_party_id text, third_party_user_id text, password_hash text, is_verified boolean,
      time_joined bigint`,
    rows: methods,
  })
  await insert(query, {
    into: 'method_tenants (method_id, tenant_id, position)',
    as: 'method_id text, tenant_id text, position integer',
    rows: all.flatMap((method) =>
      [...new Set(method.tenantIds)].map((tenant_id, position) => {
        return { method_id: method.superTokensUserId, tenant_id, position }
      }),
    ),
  })
  await insert(query, {
    into: 'logins (tenant_id, login, method_id)',
    as: 'tenant_id text, login text, method_id text',
    rows: all.flatMap((method) =>
      heldBy(method, loginsOf).map(({ tenant_id, value }) => {
        return { tenant_id, login: value, method_id: method.superTokensUserId }
      }),
    ),
  })
  await insert(query, {
    into: 'primary_infos (tenant_id, info, account_id)',
    as: 'tenant_id text, info text, account_id text',
    rows: accounts
      .filter((account) => account.is_primary)
      .flatMap(({ id, methods }) =>
        methods.flatMap((method) =>
          heldBy(method, primaryInfosOf).map(({ tenant_id, value }) => {
            return { tenant_id, info: value, account_id: id }
          }),
        ),
      ),
  })
}

const METHOD_COLUMNS = `id, account_id, position, recipe_id, email, phone_number, third_party_id,
  third_party_user_id, password_hash, is_verified, time_joined`

interface Account {
  readonly id: string
  readonly is_primary: boolean
  readonly time_joined: number
  readonly methods: readonly LoginMethod[]
}

function accountsOf(user: ImportedUser, isLinked: boolean): Account[] {
  const { loginMethods } = user
  if (isLinked) return [toAccount({ id: user.id, isPrimary: true, methods: loginMethods })]
  return loginMethods.map((method) =>
    toAccount({ id: method.superTokensUserId, isPrimary: false, methods: [method] }),
  )
}

function toAccount({
  id,
  isPrimary,
  methods,
}: {
  id: string
  isPrimary: boolean
  methods: readonly LoginMethod[]
}): Account {
  const time_joined = Math.min(...methods.map((method) => method.timeJoinedInMSSinceEpoch))
  return { id, is_primary: isPrimary, time_joined, methods }
}

function toRow(method: LoginMethod) {
  const { passwordHash, plainTextPassword } = method
  const hash = plainTextPassword === undefined ? undefined : hashPassword(plainTextPassword)
  return {
    id: method.superTokensUserId,
    recipe_id: method.recipeId,
    email: method.email,
    phone_number: method.phoneNumber,
    third_party_id: method.thirdPartyId,
    third_party_user_id: method.thirdPartyUserId,
    password_hash: passwordHash ?? hash,
    // Verification concerns the address, so a login without one needs none.
    is_verified: method.isVerified || method.email === undefined,
    time_joined: method.timeJoinedInMSSinceEpoch,
  }
}

interface Insertion {
  /** The table with its columns; `as` has their types. */
  readonly into: string
  readonly as: string
  readonly rows: readonly object[]
}

async function insert(query: Query, { into, as, rows }: Insertion): Promise<void> {
  if (rows.length === 0) return
  const columns = into.slice(into.indexOf('(') + 1, -1)
  // The methods of a primary account may share an e-mail address.
  await query(
    `insert into ${into} select distinct ${columns}
     from json_to_recordset($1::json) as row (${as})`,
    [JSON.stringify(rows)],
  )
}
