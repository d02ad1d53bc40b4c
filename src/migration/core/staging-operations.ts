import { z } from 'zod'
import { isObject } from '../../base/options.js'
import type { DirectImport, RowQuery, RowStatus, StagedRow, Staging } from './core-client.js'
import {
  type Accepted,
  bySchema,
  MAX_ANSWER_BYTES,
  MAX_RECORDS_BYTES,
  type Operation,
} from './core-operation.js'
import { cutSecrets, secretsOf } from './cut-secrets.js'
import type { ImportUser, RecipeId } from './import-user.js'
import { coreUser } from './look-up-operations.js'

// A schema drops the members that it does not name, for example the secrets of rows and additions of a
// newer core.

const ok = z.literal('OK')
const text = z.string()
const texts = z.array(text)
/** Not compared with the known recipes, because a row may have a recipe of a newer core. */
const recipeId = z.custom<RecipeId>((value) => typeof value === 'string')

/** A core before 10.1.1 returns no users. */
const stagedUsers = z.object({
  status: ok,
  users: z.exactOptional(
    z.array(
      z.object({
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
      }),
    ),
  ),
})

export const stage = (users: readonly ImportUser[]): Operation<Staging> => ({
  method: 'POST',
  path: '/bulk-import/users',
  body: { users },
  timeLimit: 'staging',
  maxAnswerBytes: MAX_RECORDS_BYTES,
  accept: (reply) => {
    const { data } = stagedUsers.safeParse(reply)
    if (data === undefined) return undefined
    const { users: staged } = data
    // Cores before 10.1.1 return no users, and no core returns users for an empty call.
    if (staged === undefined) return { value: { outcome: 'staged' } }
    return staged.length === users.length
      ? { value: { outcome: 'staged', users: staged } }
      : undefined
  },
  acceptRefusal: (reply) => stagingRejection(reply, users),
})

/** The 400 of staging. */
const rejectedUsers = z.object({
  users: z.array(z.object({ index: z.int().nonnegative(), errors: texts.nonempty() })).nonempty(),
})

function stagingRejection(
  reply: unknown,
  users: readonly ImportUser[],
): Accepted<Staging> | undefined {
  const { data } = rejectedUsers.safeParse(reply)
  if (data === undefined || data.users.some(({ index }) => index >= users.length)) return undefined
  return {
    value: {
      outcome: 'rejected',
      users: data.users.map(({ index, errors }) => {
        const secrets = secretsOf(users[index])
        return { index, errors: errors.map((message) => cutSecrets(message, secrets)) }
      }),
    },
  }
}

export const importDirectly = (user: ImportUser): Operation<DirectImport> => ({
  method: 'POST',
  path: '/bulk-import/import',
  body: user,
  timeLimit: 'staging',
  maxAnswerBytes: MAX_RECORDS_BYTES,
  accept: bySchema(z.object({ status: ok, user: coreUser }), (reply) => ({
    outcome: 'created',
    user: reply.user,
  })),
  acceptRefusal: bySchema(z.object({ errors: texts.nonempty() }), ({ errors }) => {
    const secrets = secretsOf(user)
    return { outcome: 'rejected', errors: errors.map((message) => cutSecrets(message, secrets)) }
  }),
})

const row = z.object({
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

const rowPage = z.object({
  status: ok,
  users: z.array(row),
  nextPaginationToken: z.exactOptional(text),
})

export interface RowPage {
  readonly users: readonly StagedRow[]
  readonly nextPaginationToken?: string
}

export const listRows = ({ status, limit, paginationToken }: RowQuery): Operation<RowPage> => ({
  method: 'GET',
  path: '/bulk-import/users',
  query: { status, limit: limit?.toString(), paginationToken },
  timeLimit: 'default',
  maxAnswerBytes: MAX_RECORDS_BYTES,
  accept: (reply) => {
    const { data } = rowPage.safeParse(reply)
    if (data === undefined) return undefined
    const { status: _, ...page } = data
    const rawRows = (reply as { users: unknown[] }).users
    const users = page.users.map((each, index) => withoutQuotations(each, rawRows[index]))
    return { value: { ...page, users } }
  },
})

/** Like `listRows`, for a caller that can request fewer rows. */
export const listRowsThatFit = (query: RowQuery): Operation<RowPage | 'too_large'> => ({
  ...listRows(query),
  whenTooLarge: 'too_large',
})

/** Removes the row's secrets from its error message, which may quote the row. */
function withoutQuotations(staged: StagedRow, rawRow: unknown): StagedRow {
  if (staged.errorMessage === undefined) return staged
  return { ...staged, errorMessage: cutSecrets(staged.errorMessage, secretsOf(rawRow)) }
}

export const countRows = (status: RowStatus | undefined): Operation<number> => ({
  method: 'GET',
  path: '/bulk-import/users/count',
  query: { status },
  timeLimit: 'default',
  maxAnswerBytes: MAX_ANSWER_BYTES,
  accept: bySchema(z.object({ status: ok, count: z.int().nonnegative() }), ({ count }) => count),
})

/** The only reply without a status. */
const deletion = z.object({ deletedIds: texts, invalidIds: texts })

export const deleteRows = (ids: readonly string[]): Operation<z.output<typeof deletion>> => ({
  method: 'POST',
  path: '/bulk-import/users/remove',
  body: { ids },
  timeLimit: 'default',
  maxAnswerBytes: MAX_ANSWER_BYTES,
  accept: bySchema(deletion, (reply) => reply),
})
