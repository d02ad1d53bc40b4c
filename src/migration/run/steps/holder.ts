import type { AccountInfo } from '../../core/core-client.js'
import type { ImportLoginMethod } from '../../core/import-user.js'
import type { Work } from '../work.js'

/** Another account holds the login. */
const HELD: ReadonlySet<string> = new Set(['E003', 'E005', 'E006', 'E007', 'E022'])

type Logins = { readonly loginMethods: readonly ImportLoginMethod[] }

/** The core's id of the account that holds a login for which an import has failed. */
export async function holderOf(
  work: Pick<Work, 'core' | 'signal'>,
  record: Logins,
  code: string | undefined,
): Promise<string | undefined> {
  return code !== undefined && HELD.has(code) ? accountWith(work, record) : undefined
}

/** The core's id of the first account with one of these logins. */
export async function accountWith(
  { core, signal }: Pick<Work, 'core' | 'signal'>,
  { loginMethods }: Logins,
): Promise<string | undefined> {
  for (const method of loginMethods) {
    for (const tenantId of method.tenantIds ?? ['public']) {
      for (const info of accountInfosOf(method)) {
        const [user] = await core.usersWith(tenantId, info, { signal })
        if (user !== undefined) return (await core.coreIdOf(user.id, { signal })) ?? user.id
      }
    }
  }
  return undefined
}

function accountInfosOf(method: ImportLoginMethod): AccountInfo[] {
  const { email, phoneNumber, thirdPartyId, thirdPartyUserId } = method
  const infos: AccountInfo[] = []
  if (thirdPartyId !== undefined && thirdPartyUserId !== undefined) {
    infos.push({ thirdPartyId, thirdPartyUserId })
  }
  if (email !== undefined && email !== null) infos.push({ email })
  if (phoneNumber !== undefined && phoneNumber !== null) infos.push({ phoneNumber })
  return infos
}
