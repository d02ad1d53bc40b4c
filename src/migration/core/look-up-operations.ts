import type { AccountInfo } from './core-client.js'
import { formed, MAX_ANSWER_BYTES, MAX_RECORDS_BYTES, type Operation } from './core-operation.js'
import type { CoreTenant, CoreTotpDevice, CoreUser } from './reply.js'
import * as schemas from './reply-schemas.js'

type LookUp<T> = Pick<Operation<T>, 'path' | 'accept'> & Partial<Operation<T>>

const lookUp = <T>(operation: LookUp<T>): Operation<T> => ({
  method: 'GET',
  time: 'usual',
  maxAnswerBytes: MAX_ANSWER_BYTES,
  ...operation,
})

export const findCoreId = (externalUserId: string): Operation<string | undefined> => {
  const read = formed(schemas.mappingReply, (reply) => reply)
  return lookUp({
    path: '/recipe/userid/map',
    query: { userId: externalUserId, userIdType: 'EXTERNAL' },
    accept: (reply) => {
      const mapping = read(reply)?.value
      if (mapping?.status !== 'OK') return mapping && { value: undefined }
      // The account of another id is not a valid reply. The core trims the id.
      const isAsked = mapping.externalUserId.trim() === externalUserId.trim()
      return isAsked ? { value: mapping.superTokensUserId } : undefined
    },
  })
}

export const findUser = (userId: string): Operation<CoreUser | undefined> =>
  lookUp({
    path: '/user/id',
    query: { userId },
    accept: formed(schemas.userReply, (reply) => (reply.status === 'OK' ? reply.user : undefined)),
  })

export const findUsersWith = (
  tenantId: string,
  info: AccountInfo,
): Operation<readonly CoreUser[]> =>
  lookUp({
    prefix: prefixOf(tenantId),
    path: '/users/by-accountinfo',
    query: { ...info, doUnionOfAccountInfo: 'false' },
    accept: formed(schemas.usersReply, ({ users }) => users),
  })

export const findRolesOf = (tenantId: string, userId: string): Operation<readonly string[]> =>
  lookUp({
    prefix: prefixOf(tenantId),
    path: '/recipe/user/roles',
    query: { userId },
    accept: formed(schemas.rolesReply, ({ roles }) => roles),
  })

export const findMetadataOf = (userId: string): Operation<Readonly<Record<string, unknown>>> =>
  lookUp({
    path: '/recipe/user/metadata',
    query: { userId },
    maxAnswerBytes: MAX_RECORDS_BYTES,
    accept: formed(schemas.metadataReply, ({ metadata }) => metadata),
  })

export const findTotpDevicesOf = (userId: string): Operation<readonly CoreTotpDevice[]> =>
  lookUp({
    path: '/recipe/totp/device/list',
    query: { userId },
    accept: formed(schemas.totpDevicesReply, ({ devices }) => devices),
  })

export const listTenants = (): Operation<readonly CoreTenant[]> =>
  lookUp({
    path: '/recipe/multitenancy/tenant/list/v2',
    accept: formed(schemas.tenantsReply, ({ tenants }) =>
      tenants.map(({ tenantId, thirdParty }) => {
        const thirdPartyIds = thirdParty?.providers?.map((provider) => provider.thirdPartyId)
        return { tenantId, ...(thirdPartyIds !== undefined && { thirdPartyIds }) }
      }),
    ),
  })

export const listRoles = (): Operation<readonly string[]> =>
  lookUp({
    path: '/recipe/roles',
    accept: formed(schemas.rolesReply, ({ roles }) => roles),
  })

export const listFeatures = (): Operation<readonly string[]> =>
  lookUp({
    path: '/ee/featureflag',
    accept: formed(schemas.featuresReply, ({ features }) => features),
  })

/** Tenant ids that are safe in a path. Dots would lead to another path, `appid-` to another app. */
const TENANT_ID = /^(?!appid-)[a-z0-9-]+$/i

/** Returns the path prefix of a tenant. The public tenant has none. */
function prefixOf(tenantId: string): string {
  if (TENANT_ID.test(tenantId)) return tenantId === 'public' ? '' : `/${tenantId}`
  throw new TypeError('tenantId must be the id of a tenant: letters, digits and hyphens')
}
