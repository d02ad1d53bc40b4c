import { z } from 'zod'
import { isObject } from '../../base/options.js'
import type { AccountInfo, CoreTenant, CoreTotpDevice, CoreUser } from './core-client.js'
import { bySchema, MAX_ANSWER_BYTES, MAX_RECORDS_BYTES, type Operation } from './core-operation.js'

// A schema drops the members that it does not name, for example additions of a newer core.

const ok = z.literal('OK')
const text = z.string()
const texts = z.array(text)
const thirdParty = z.object({ id: text, userId: text })

export const coreUser: z.ZodType<CoreUser> = z.object({
  id: text,
  isPrimaryUser: z.boolean(),
  tenantIds: texts,
  timeJoined: z.number(),
  emails: texts,
  phoneNumbers: texts,
  thirdParty: z.array(thirdParty),
  loginMethods: z.array(
    z.object({
      recipeId: text,
      recipeUserId: text,
      tenantIds: texts,
      verified: z.boolean(),
      timeJoined: z.number(),
      email: z.exactOptional(text),
      phoneNumber: z.exactOptional(text),
      thirdParty: z.exactOptional(thirdParty),
    }),
  ),
})

type LookUp<T> = Pick<Operation<T>, 'path' | 'accept'> & Partial<Operation<T>>

const lookUp = <T>(operation: LookUp<T>): Operation<T> => ({
  method: 'GET',
  timeLimit: 'default',
  maxAnswerBytes: MAX_ANSWER_BYTES,
  ...operation,
})

const mapping = z.discriminatedUnion('status', [
  z.object({ status: ok, superTokensUserId: text, externalUserId: text }),
  z.object({ status: z.literal('UNKNOWN_MAPPING_ERROR') }),
])

export const findCoreId = (externalUserId: string): Operation<string | undefined> =>
  lookUp({
    path: '/recipe/userid/map',
    query: { userId: externalUserId, userIdType: 'EXTERNAL' },
    accept: (reply) => {
      const { data } = mapping.safeParse(reply)
      if (data?.status !== 'OK') return data && { value: undefined }
      // A reply about another id is invalid. The core trims the id that it is asked for.
      const isSameId = data.externalUserId.trim() === externalUserId.trim()
      return isSameId ? { value: data.superTokensUserId } : undefined
    },
  })

const foundUser = z.discriminatedUnion('status', [
  z.object({ status: ok, user: coreUser }),
  z.object({ status: z.literal('UNKNOWN_USER_ID_ERROR') }),
])

export const findUser = (userId: string): Operation<CoreUser | undefined> =>
  lookUp({
    path: '/user/id',
    query: { userId },
    accept: bySchema(foundUser, (reply) => (reply.status === 'OK' ? reply.user : undefined)),
  })

export const findUsersWith = (
  tenantId: string,
  info: AccountInfo,
): Operation<readonly CoreUser[]> =>
  lookUp({
    prefix: prefixOf(tenantId),
    path: '/users/by-accountinfo',
    query: { ...info, doUnionOfAccountInfo: 'false' },
    accept: bySchema(z.object({ status: ok, users: z.array(coreUser) }), ({ users }) => users),
  })

const roleNames = z.object({ status: ok, roles: texts })

export const findRolesOf = (tenantId: string, userId: string): Operation<readonly string[]> =>
  lookUp({
    prefix: prefixOf(tenantId),
    path: '/recipe/user/roles',
    query: { userId },
    accept: bySchema(roleNames, ({ roles }) => roles),
  })

const userMetadata = z.object({
  status: ok,
  metadata: z.custom<Record<string, unknown>>(isObject),
})

export const findMetadataOf = (userId: string): Operation<Readonly<Record<string, unknown>>> =>
  lookUp({
    path: '/recipe/user/metadata',
    query: { userId },
    maxAnswerBytes: MAX_RECORDS_BYTES,
    accept: bySchema(userMetadata, ({ metadata }) => metadata),
  })

const totpDevices = z.object({
  status: ok,
  devices: z.array(
    z.object({ name: text, period: z.number(), skew: z.number(), verified: z.boolean() }),
  ),
})

export const findTotpDevicesOf = (userId: string): Operation<readonly CoreTotpDevice[]> =>
  lookUp({
    path: '/recipe/totp/device/list',
    query: { userId },
    accept: bySchema(totpDevices, ({ devices }) => devices),
  })

/** Drops the client secrets of the providers. */
const tenantList = z.object({
  status: ok,
  tenants: z.array(
    z.object({
      tenantId: text,
      thirdParty: z.exactOptional(
        z.object({ providers: z.exactOptional(z.array(z.object({ thirdPartyId: text }))) }),
      ),
    }),
  ),
})

export const listTenants = (): Operation<readonly CoreTenant[]> =>
  lookUp({
    path: '/recipe/multitenancy/tenant/list/v2',
    accept: bySchema(tenantList, ({ tenants }) =>
      tenants.map(({ tenantId, thirdParty: settings }) => {
        const thirdPartyIds = settings?.providers?.map((provider) => provider.thirdPartyId)
        return { tenantId, ...(thirdPartyIds !== undefined && { thirdPartyIds }) }
      }),
    ),
  })

export const listRoles = (): Operation<readonly string[]> =>
  lookUp({
    path: '/recipe/roles',
    accept: bySchema(roleNames, ({ roles }) => roles),
  })

export const listFeatures = (): Operation<readonly string[]> =>
  lookUp({
    path: '/ee/featureflag',
    accept: bySchema(z.object({ status: ok, features: texts }), ({ features }) => features),
  })

/** Tenant ids that are safe in a path. Dots would lead to another path, `appid-` to another app. */
const TENANT_ID = /^(?!appid-)[a-z0-9-]+$/i

/** Returns the path prefix of a tenant. The public tenant has none. */
function prefixOf(tenantId: string): string {
  if (TENANT_ID.test(tenantId)) return tenantId === 'public' ? '' : `/${tenantId}`
  throw new TypeError('tenantId must be the id of a tenant: letters, digits and hyphens')
}
