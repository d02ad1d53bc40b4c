import { z } from 'zod'
import { isObject } from '../../base/options.js'
import type {
  CallOptions,
  CoreClient,
  CoreUser,
  DirectImport,
  RowStatus,
  StagedRow,
  Staging,
} from './core-client.js'
import { withoutRecordValues } from './core-texts.js'
import type { ImportUser, RecipeId } from './import-user.js'

/** One call of the core: its request, and how its reply is read. */
export interface CoreCall<T> {
  readonly method: 'GET' | 'POST'
  /** Without the tenant and the query, because errors contain this path. */
  readonly path: string
  readonly tenantId?: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: object
  /** Imports users, so it has the time limit for that. */
  readonly isImport?: boolean
  /** Returns the value of a 200; `undefined` if the reply does not have the form of the call. */
  readonly read: Reader<T>
  /** Returns the value of a 400 that is a valid answer; `undefined` for any other 400. */
  readonly readRefusal?: Reader<T>
}

/** Wraps the value, because it may be `undefined`. */
type Reader<T> = (reply: unknown) => { readonly value: T } | undefined

/** Returns a function that checks a reply by a schema, and by `fits`, and picks its value. */
const reading =
  <Schema extends z.ZodType, T>(
    schema: Schema,
    pick: (reply: z.output<Schema>) => T,
    fits: (reply: z.output<Schema>) => boolean = () => true,
  ): Reader<T> =>
  (reply) => {
    const { success, data } = schema.safeParse(reply)
    return success && fits(data) ? { value: pick(data) } : undefined
  }

// A schema drops the members that it does not name: the secrets of rows and providers, and additions of a newer core.

const text = z.string()
const texts = z.array(text)
const ok = <Shape extends z.core.$ZodLooseShape>(shape: Shape) =>
  z.object({ status: z.literal('OK'), ...shape })
const thirdParty = z.object({ id: text, userId: text })
/** Not compared with the known recipes, because a row may have a recipe of a newer core. */
const recipeId = z.custom<RecipeId>((value) => typeof value === 'string')

const coreUser: z.ZodType<CoreUser> = z.object({
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

/** Cuts the values of a row out of its error message: also secrets, which the schema drops. */
function withReadableError(row: unknown): unknown {
  if (!isObject(row) || typeof row['errorMessage'] !== 'string') return row
  return { ...row, errorMessage: withoutRecordValues(row['errorMessage'], row) }
}

const row: z.ZodType<StagedRow> = z.preprocess(
  withReadableError,
  z.object({
    id: text,
    status: z.enum(['NEW', 'PROCESSING', 'FAILED'] satisfies RowStatus[]),
    errorMessage: z.exactOptional(text),
    primaryUserId: z.exactOptional(text),
    createdAt: z.number(),
    updatedAt: z.number(),
    externalUserId: z.exactOptional(text),
    userMetadata: z.exactOptional(z.custom<Record<string, unknown>>(isObject)),
    userRoles: z.exactOptional(z.array(z.object({ role: text, tenantIds: texts }))),
    totpDevices: z.exactOptional(
      z.array(
        z.object({
          period: z.exactOptional(z.number()),
          skew: z.exactOptional(z.number()),
          deviceName: z.exactOptional(text),
        }),
      ),
    ),
    loginMethods: z.array(
      z.object({
        recipeId,
        superTokensUserId: z.exactOptional(text),
        tenantIds: z.exactOptional(texts),
        isVerified: z.exactOptional(z.boolean()),
        isPrimary: z.exactOptional(z.boolean()),
        timeJoinedInMSSinceEpoch: z.exactOptional(z.number()),
        email: z.exactOptional(text),
        phoneNumber: z.exactOptional(text),
        hashingAlgorithm: z.exactOptional(text),
        thirdPartyId: z.exactOptional(text),
        thirdPartyUserId: z.exactOptional(text),
      }),
    ),
  }),
)

const stagedUser = z.object({
  userId: text,
  loginMethods: z.array(
    z.object({
      recipeId,
      userId: text,
      tenants: texts,
      email: z.exactOptional(text.nullable()),
      phoneNumber: z.exactOptional(text.nullable()),
      thirdpartyId: z.exactOptional(text),
      thirdpartyUserId: z.exactOptional(text),
    }),
  ),
})

/** Cores before 10.1.1 return no users, and no core returns users for an empty call. */
const staged = ok({ users: z.exactOptional(z.array(stagedUser)) })

const rejectedUsers = z.object({
  users: z.array(z.object({ index: z.int().nonnegative(), errors: texts.nonempty() })).nonempty(),
})

const rejectedUser = z.object({ errors: texts.nonempty() })

const rows = ok({ users: z.array(row), nextPaginationToken: z.exactOptional(text) })

const mapping = z.discriminatedUnion('status', [
  ok({ superTokensUserId: text, externalUserId: text }),
  z.object({ status: z.literal('UNKNOWN_MAPPING_ERROR') }),
])

const foundUser = z.discriminatedUnion('status', [
  ok({ user: coreUser }),
  z.object({ status: z.literal('UNKNOWN_USER_ID_ERROR') }),
])

const totpDevice = z.object({
  name: text,
  period: z.number(),
  skew: z.number(),
  verified: z.boolean(),
})

const metadata = z.custom<Record<string, unknown>>(isObject)

/** The readers of replies that do not depend on what was sent. */
const READERS = {
  imported: reading(
    ok({ user: coreUser }),
    ({ user }): DirectImport => ({ outcome: 'created', user }),
  ),
  rows: reading(rows, ({ status: _, ...page }) => page),
  count: reading(ok({ count: z.int().nonnegative() }), ({ count }) => count),
  // The only reply without a status.
  deletion: reading(z.object({ deletedIds: texts, invalidIds: texts }), (reply) => reply),
  user: reading(foundUser, (reply) => (reply.status === 'OK' ? reply.user : undefined)),
  users: reading(ok({ users: z.array(coreUser) }), (reply) => reply.users),
  roles: reading(ok({ roles: texts }), (reply) => reply.roles),
  metadata: reading(ok({ metadata }), (reply) => reply.metadata),
  totpDevices: reading(ok({ devices: z.array(totpDevice) }), (reply) => reply.devices),
  tenants: reading(
    ok({ tenants: z.array(z.object({ tenantId: text })) }),
    (reply) => reply.tenants,
  ),
  features: reading(ok({ features: texts }), (reply) => reply.features),
}

const readStaged = (users: readonly ImportUser[]): Reader<Staging> =>
  reading(
    staged,
    (reply) => ({ outcome: 'staged', ...(reply.users && { users: reply.users }) }),
    (reply) => reply.users === undefined || reply.users.length === users.length,
  )

const readRejectedUsers = (users: readonly ImportUser[]): Reader<Staging> =>
  reading(
    rejectedUsers,
    (reply) => ({
      outcome: 'rejected',
      users: reply.users.map(({ index, errors }) => ({
        index,
        errors: errors.map((message) => withoutRecordValues(message, users[index])),
      })),
    }),
    (reply) => reply.users.every(({ index }) => index < users.length),
  )

const readRejectedUser = (user: ImportUser): Reader<DirectImport> =>
  reading(rejectedUser, ({ errors }) => ({
    outcome: 'rejected',
    errors: errors.map((message) => withoutRecordValues(message, user)),
  }))

/** A reply about another id is invalid. The core trims the id that it is asked for. */
const readMappingOf = (externalUserId: string): Reader<string | undefined> =>
  reading(
    mapping,
    (reply) => (reply.status === 'OK' ? reply.superTokensUserId : undefined),
    (reply) => reply.status !== 'OK' || reply.externalUserId.trim() === externalUserId.trim(),
  )

type Query = Readonly<Record<string, string | undefined>>

const get = <T>(path: string, query: Query, read: Reader<T>): CoreCall<T> => ({
  method: 'GET',
  path,
  query,
  read,
})

const post = <T>(path: string, body: object, read: Reader<T>): CoreCall<T> => ({
  method: 'POST',
  path,
  body,
  read,
})

/** The calls of the core that a migration needs, as the functions of the client. */
export const operationsOf = (
  ask: <T>(call: CoreCall<T>, options?: CallOptions) => Promise<T>,
): Omit<CoreClient, 'baseUrl' | 'rows'> => ({
  stageUsers: (users, options) => {
    const call = post('/bulk-import/users', { users }, readStaged(users))
    return ask({ ...call, readRefusal: readRejectedUsers(users), isImport: true }, options)
  },
  importUser: (user, options) => {
    const call = post('/bulk-import/import', user, READERS.imported)
    return ask({ ...call, readRefusal: readRejectedUser(user), isImport: true }, options)
  },
  listRows: ({ status, limit, paginationToken } = {}, options) => {
    const query = { status, limit: limit?.toString(), paginationToken }
    return ask(get('/bulk-import/users', query, READERS.rows), options)
  },
  countRows: (status, options) =>
    ask(get('/bulk-import/users/count', { status }, READERS.count), options),
  deleteRows: (ids, options) =>
    ask(post('/bulk-import/users/remove', { ids }, READERS.deletion), options),
  coreIdOf: (externalUserId, options) => {
    const query = { userId: externalUserId, userIdType: 'EXTERNAL' }
    return ask(get('/recipe/userid/map', query, readMappingOf(externalUserId)), options)
  },
  user: (userId, options) => ask(get('/user/id', { userId }, READERS.user), options),
  usersWith: (tenantId, info, options) => {
    const query = { ...info, doUnionOfAccountInfo: 'false' }
    return ask({ ...get('/users/by-accountinfo', query, READERS.users), tenantId }, options)
  },
  rolesOf: (tenantId, userId, options) =>
    ask({ ...get('/recipe/user/roles', { userId }, READERS.roles), tenantId }, options),
  metadataOf: (userId, options) =>
    ask(get('/recipe/user/metadata', { userId }, READERS.metadata), options),
  totpDevicesOf: (userId, options) =>
    ask(get('/recipe/totp/device/list', { userId }, READERS.totpDevices), options),
  tenants: (options) =>
    ask(get('/recipe/multitenancy/tenant/list/v2', {}, READERS.tenants), options),
  roles: (options) => ask(get('/recipe/roles', {}, READERS.roles), options),
  features: (options) => ask(get('/ee/featureflag', {}, READERS.features), options),
})

/** Tenant ids that are safe in a path. Dots would lead to another path, `appid-` to another app. */
const TENANT_ID = /^(?!appid-)[a-z0-9-]+$/i

/**
 * Returns the path of a call with its tenant and its query.
 *
 * @throws TypeError if the tenant is none, URIError if a parameter has a lone surrogate.
 */
export function urlPathOf({ path, tenantId = 'public', query = {} }: CoreCall<unknown>): string {
  if (!TENANT_ID.test(tenantId))
    throw new TypeError('tenantId must be the id of a tenant: letters, digits and hyphens')
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  )
  const prefix = tenantId === 'public' ? '' : `/${tenantId}`
  return prefix + path + (pairs.length === 0 ? '' : `?${pairs.join('&')}`)
}
