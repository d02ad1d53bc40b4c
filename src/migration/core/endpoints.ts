import { z } from 'zod'
import { isObject } from '../../base/options.js'
import type {
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
  /** The value of a reply that is too large, if that is not an error. */
  readonly whenTooLarge?: T
}

/** Wraps the value, because it may be `undefined`. */
type Reader<T> = (reply: unknown) => { readonly value: T } | undefined

/** Returns a function that checks a reply by a schema, and by `fits`, and picks its value. */
const reading =
  <Schema extends z.ZodType, T>(
    schema: Schema,
    pick: (reply: z.output<Schema>, asReceived: unknown) => T,
    fits: (reply: z.output<Schema>) => boolean = () => true,
  ): Reader<T> =>
  (reply) => {
    const { success, data } = schema.safeParse(reply)
    return success && fits(data) ? { value: pick(data, reply) } : undefined
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

const row: z.ZodType<StagedRow> = z.object({
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
})

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

/** The readers of replies that do not depend on what was sent. */
const READERS = {
  imported: reading(
    ok({ user: coreUser }),
    ({ user }): DirectImport => ({ outcome: 'created', user }),
  ),
  rows: reading(rows, ({ status: _, ...page }, asReceived) => {
    const { users } = asReceived as { readonly users: readonly unknown[] }
    return { ...page, users: page.users.map((each, index) => readableRow(each, users[index])) }
  }),
  count: reading(ok({ count: z.int().nonnegative() }), ({ count }) => count),
  // The only reply without a status.
  deletion: reading(z.object({ deletedIds: texts, invalidIds: texts }), (reply) => reply),
  user: reading(foundUser, (reply) => (reply.status === 'OK' ? reply.user : undefined)),
  users: reading(ok({ users: z.array(coreUser) }), ({ users }) => users),
  roles: reading(ok({ roles: texts }), ({ roles }) => roles),
  metadata: reading(
    ok({ metadata: z.custom<Record<string, unknown>>(isObject) }),
    ({ metadata }) => metadata,
  ),
  totpDevices: reading(ok({ devices: z.array(totpDevice) }), ({ devices }) => devices),
  tenants: reading(
    ok({ tenants: z.array(z.object({ tenantId: text })) }),
    ({ tenants }) => tenants,
  ),
  features: reading(ok({ features: texts }), ({ features }) => features),
}

const get = <T>(
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  read: Reader<T>,
): CoreCall<T> => ({ method: 'GET', path, query, read })

const post = <T>(path: string, body: object, read: Reader<T>): CoreCall<T> => ({
  method: 'POST',
  path,
  body,
  read,
})

/** The calls of the core that a migration needs, by the function of the client. */
export const ENDPOINTS: {
  readonly [Name in Exclude<keyof CoreClient, 'baseUrl' | 'rows'>]: (
    ...args: Parameters<CoreClient[Name]>
  ) => CoreCall<Awaited<ReturnType<CoreClient[Name]>>>
} = {
  stageUsers: (users) => ({
    ...post('/bulk-import/users', { users }, readStaged(users)),
    readRefusal: readRejectedUsers(users),
    isImport: true,
  }),
  importUser: (user) => ({
    ...post('/bulk-import/import', user, READERS.imported),
    readRefusal: reading(rejectedUser, ({ errors }) => ({
      outcome: 'rejected',
      errors: errors.map((message) => withoutRecordValues(message, user)),
    })),
    isImport: true,
  }),
  listRows: ({ status, limit, paginationToken } = {}) => {
    const query = { status, limit: limit?.toString(), paginationToken }
    return get('/bulk-import/users', query, READERS.rows)
  },
  countRows: (status) => get('/bulk-import/users/count', { status }, READERS.count),
  deleteRows: (ids) => post('/bulk-import/users/remove', { ids }, READERS.deletion),
  coreIdOf: (externalUserId) => {
    const query = { userId: externalUserId, userIdType: 'EXTERNAL' }
    return get('/recipe/userid/map', query, readMappingOf(externalUserId))
  },
  user: (userId) => get('/user/id', { userId }, READERS.user),
  usersWith: (tenantId, info) => ({
    ...get('/users/by-accountinfo', { ...info, doUnionOfAccountInfo: 'false' }, READERS.users),
    tenantId,
  }),
  rolesOf: (tenantId, userId) => ({
    ...get('/recipe/user/roles', { userId }, READERS.roles),
    tenantId,
  }),
  metadataOf: (userId) => get('/recipe/user/metadata', { userId }, READERS.metadata),
  totpDevicesOf: (userId) => get('/recipe/totp/device/list', { userId }, READERS.totpDevices),
  tenants: () => get('/recipe/multitenancy/tenant/list/v2', {}, READERS.tenants),
  roles: () => get('/recipe/roles', {}, READERS.roles),
  features: () => get('/ee/featureflag', {}, READERS.features),
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

/** A reply about another id is invalid. The core trims the id that it is asked for. */
const readMappingOf = (externalUserId: string): Reader<string | undefined> =>
  reading(
    mapping,
    (reply) => (reply.status === 'OK' ? reply.superTokensUserId : undefined),
    (reply) => reply.status !== 'OK' || reply.externalUserId.trim() === externalUserId.trim(),
  )

/** Cuts the values of the row out of its error message. The row has secrets that the schema drops. */
function readableRow(staged: StagedRow, asReceived: unknown): StagedRow {
  if (staged.errorMessage === undefined) return staged
  return { ...staged, errorMessage: withoutRecordValues(staged.errorMessage, asReceived) }
}

/** Tenant ids that are safe in a path. Dots would lead to another path, `appid-` to another app. */
const TENANT_ID = /^(?!appid-)[a-z0-9-]+$/i

/**
 * Returns the path of a call with its tenant and its query.
 *
 * @throws TypeError if the tenant is none, or a parameter has a lone surrogate, which would be sent as another
 * character.
 */
export function urlPathOf({ path, tenantId = 'public', query = {} }: CoreCall<unknown>): string {
  if (!TENANT_ID.test(tenantId))
    throw new TypeError('tenantId must be the id of a tenant: letters, digits and hyphens')
  const pairs: string[] = []
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    if (!value.isWellFormed()) throw new TypeError(`${name} must be well-formed Unicode`)
    pairs.push(`${name}=${encodeURIComponent(value)}`)
  }
  const prefix = tenantId === 'public' ? '' : `/${tenantId}`
  return prefix + path + (pairs.length === 0 ? '' : `?${pairs.join('&')}`)
}
