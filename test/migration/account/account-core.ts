import type { CoreTotpDevice, CoreUser } from '../../../src/migration/core/core-client.js'
import { ok, type Reply, replies, startScriptedCore } from '../core/scripted-core.js'

/** What a core knows, by the ids under which it keeps it. */
export interface Known {
  readonly mappings?: Readonly<Record<string, string>>
  readonly users?: Readonly<Record<string, CoreUser>>
  readonly roles?: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>
  readonly metadata?: Readonly<Record<string, object>>
  readonly totpDevices?: Readonly<Record<string, readonly CoreTotpDevice[]>>
}

/** A core that answers look-ups as the real one does. */
export const startAccountCore = (known: Known) =>
  startScriptedCore(({ url }) => answer(new URL(url, 'http://core'), known))

function answer({ pathname, searchParams }: URL, known: Known): Reply {
  const userId = searchParams.get('userId') ?? ''
  const inTenant = pathname.replace(/^\/(shop|public)(?=\/)/, '')
  switch (inTenant) {
    case '/recipe/userid/map': {
      const superTokensUserId = known.mappings?.[userId]
      if (superTokensUserId === undefined) return replies(200, { status: 'UNKNOWN_MAPPING_ERROR' })
      return ok({ superTokensUserId, externalUserId: userId })
    }
    case '/user/id': {
      const user = known.users?.[userId]
      return user === undefined ? replies(200, { status: 'UNKNOWN_USER_ID_ERROR' }) : ok({ user })
    }
    case '/recipe/user/roles': {
      const tenantId = /^\/(shop)\//.exec(pathname)?.[1] ?? 'public'
      return ok({ roles: known.roles?.[tenantId]?.[userId] ?? [] })
    }
    case '/recipe/user/metadata':
      return ok({ metadata: known.metadata?.[userId] ?? {} })
    case '/recipe/totp/device/list':
      return ok({ devices: known.totpDevices?.[userId] ?? [] })
    case '/users/by-accountinfo':
      return ok({ users: Object.values(known.users ?? {}).filter(matches(searchParams)) })
    default:
      return replies(404, 'Not found')
  }
}

const matches = (asked: URLSearchParams) => (user: CoreUser) =>
  user.emails.includes((asked.get('email') ?? '').trim().toLowerCase()) ||
  user.phoneNumbers.includes(asked.get('phoneNumber') ?? '') ||
  user.thirdParty.some(
    ({ id, userId }) =>
      id === asked.get('thirdPartyId') && userId === asked.get('thirdPartyUserId'),
  )
