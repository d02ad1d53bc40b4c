import { bcryptVerify } from 'hash-wasm'
import { assertTenant, shownAccount } from './accounts.js'
import { field } from './input.js'
import { normaliseEmail } from './normal-forms.js'
import type { Route } from './router.js'
import { keyOf, type Tables } from './tables.js'

/** bcrypt ignores the bytes after these. */
const BCRYPT_BYTES = 72
/** Before a password that was imported in plain text. */
export const PLAIN = '$plain$'

/** The route for the sign-in with an e-mail address and a password: a plain one, or one with a hash of bcrypt. */
export function signInRoute(tables: Tables): Route {
  return {
    isPerTenant: true,
    async answer({ body, tenantId }) {
      const email = normaliseEmail(field(body, 'email', 'string'))
      const password = field(body, 'password', 'string')
      assertTenant(tables, tenantId)
      const id = tables.logins.get(keyOf({ tenantId, value: `emailpassword ${email}` })) ?? ''
      const account = tables.accounts.get(tables.accountOf.get(id) ?? '')
      const method = account?.methods.find(({ superTokensUserId }) => superTokensUserId === id)
      const isPassword = await isPasswordOf(password, method?.passwordHash ?? '')
      if (account === undefined || !isPassword) return { status: 'WRONG_CREDENTIALS_ERROR' }
      const user = shownAccount(account, tables)
      return { status: 'OK', user, recipeUserId: tables.externalIds.get(id) ?? id }
    },
  }
}

/** A hash that is not complete belongs to no password. */
async function isPasswordOf(password: string, hash: string): Promise<boolean> {
  if (hash.startsWith(PLAIN)) return hash === PLAIN + password
  const bytes = Buffer.from(password).subarray(0, BCRYPT_BYTES)
  return bcryptVerify({ password: bytes, hash }).catch(() => false)
}
