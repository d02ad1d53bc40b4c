import { field, isString, parseObject } from '../json-input.js'
import type { Route } from '../router.js'
import { readAccount } from './accounts.js'
import type { Query } from './database.js'
import { normaliseEmail } from './normalise.js'
import { isPasswordOf } from './plain-password.js'
import { assertTenant } from './tenants.js'

/** The route for the sign-in with an e-mail address and a password. */
export function signInRoute(query: Query, firebaseSignerKey: string | undefined): Route {
  return {
    tenants: 'served',
    answers: {
      POST: async ({ body, tenantId }) => {
        const input = parseObject(await body())
        const email = normaliseEmail(field(input, 'email', isString))
        const password = field(input, 'password', isString)
        await assertTenant(query, tenantId)
        return { status: 200, body: await signIn({ email, password, tenantId }) }
      },
    },
  }

  async function signIn({ email, password, tenantId }: Credentials): Promise<object> {
    // The id as JSON, because PGlite drops a byte order mark at the beginning of a text.
    const [login] = await query<Login>(
      `select account_id, password_hash, to_json(coalesce(external_id, id)) as user_id
       from logins join login_methods on id = method_id left join userid_mapping on core_id = id
       where tenant_id = $1 and login = $2`,
      [tenantId, `emailpassword ${email}`],
    )
    const isPassword =
      login !== undefined && (await isPasswordOf(password, login.password_hash, firebaseSignerKey))
    if (!isPassword) return { status: 'WRONG_CREDENTIALS_ERROR' }
    const user = await readAccount(query, login.account_id)
    return { status: 'OK', user, recipeUserId: login.user_id }
  }
}

interface Login {
  readonly account_id: string
  readonly password_hash: string
  readonly user_id: string
}

interface Credentials {
  /** Normalised. */
  readonly email: string
  readonly password: string
  readonly tenantId: string
}
