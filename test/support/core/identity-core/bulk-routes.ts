import { accountOf, shownAccount, stored } from './accounts.js'
import { BlamedFault, ChunkFault, DatabaseFault } from './import-faults.js'
import { importUsers } from './import-users.js'
import type { ImportedUser, LoginMethod, ReadContext } from './imported-user.js'
import {
  BadInput,
  field,
  isString,
  type JsonObject,
  pageLimit,
  parseObject,
  placeOf,
  tokenOf,
  withoutAbsent,
} from './input.js'
import { readUser } from './read-user.js'
import type { Call, Route } from './router.js'
import { ROW_STATUSES, type Row, type RowStatus, type Tables } from './tables.js'

const MAX_STAGED = 10_000
const MAX_DELETED = 500
const LIMITS = { fallback: 100, largest: 500, tooLarge: 'Max limit allowed is 500' }

/** The parts that the operations of the bulk import share. */
export interface BulkParts {
  readonly tables: Tables
  readonly context: () => ReadContext
  readonly clock: () => number
}

/** The five operations of the bulk import. */
export function bulkRoutes(parts: BulkParts): [string, Route][] {
  const { tables } = parts
  const route = (answers: Record<string, (call: Call) => Promise<object> | object>): Route => {
    const ok = (answerTo: (call: Call) => Promise<object> | object) => async (call: Call) => {
      return { status: 200, body: await answerTo(call) }
    }
    const all = Object.entries(answers).map(([method, answerTo]) => [method, ok(answerTo)])
    return { tenants: 'refused', answers: Object.fromEntries(all) }
  }
  return [
    [
      '/bulk-import/users',
      route({
        POST: async ({ body }) => stage(await body(), parts),
        GET: (call) => list(call, tables),
      }),
    ],
    ['/bulk-import/users/count', route({ GET: (call) => count(call, tables) })],
    [
      '/bulk-import/users/remove',
      route({ POST: async ({ body }) => remove(await body(), tables) }),
    ],
    [
      '/bulk-import/import',
      route({ POST: async ({ body }) => importDirectly(parseObject(await body()), parts) }),
    ],
  ]
}

/** All or nothing: one invalid user refuses the whole call. */
function stage(text: string, { tables, context, clock }: BulkParts): object {
  const values = field(parseObject(text), 'users', Array.isArray)
  if (values.length === 0) return { status: 'OK' }
  if (values.length > MAX_STAGED) {
    const error = `You can only add ${MAX_STAGED} users at a time.`
    throw new BadInput(JSON.stringify({ error }))
  }
  const settings = context()
  const staged: ImportedUser[] = []
  const refused: { index: number; errors: readonly string[] }[] = []
  for (const [index, value] of values.entries()) {
    const reading = readUser(value, settings)
    if ('user' in reading) staged.push(reading.user)
    else refused.push({ index, errors: reading.errors })
  }
  if (refused.length > 0) throw new BadInput(JSON.stringify({ error: HAS_INVALID, users: refused }))
  const nowMs = clock()
  const times = { createdAt: nowMs, updatedAt: nowMs }
  const rows = staged.map((user): Row => {
    return { id: user.id, user: withoutNulls(user), status: 'NEW', ...times }
  })
  tables.change({ rows })
  return { status: 'OK', users: staged.map(toStagedUser) }
}

const HAS_INVALID =
  'Data has missing or invalid fields. Please check the users field for more details.'

/** The core drops members that are null, also in metadata. */
function withoutNulls(user: ImportedUser): JsonObject {
  return JSON.parse(JSON.stringify(user, (_, value) => value ?? undefined))
}

/** Returns the answer to staging; the core spells some members differently than in the request. */
function toStagedUser({ id, externalUserId, loginMethods }: ImportedUser): object {
  return { userId: externalUserId ?? id, loginMethods: loginMethods.map(toStagedMethod) }
}

function toStagedMethod(method: LoginMethod): object {
  const { recipeId, superTokensUserId, tenantIds: tenants, email = null } = method
  const common = { recipeId, userId: superTokensUserId, tenants, email }
  if (recipeId === 'passwordless') return { ...common, phoneNumber: method.phoneNumber ?? null }
  if (recipeId !== 'thirdparty') return common
  const { thirdPartyId: thirdpartyId, thirdPartyUserId: thirdpartyUserId } = method
  return { ...common, thirdpartyId, thirdpartyUserId }
}

/** The newest come first. */
function list({ query: asked }: Call, { rows }: Tables): object {
  const limit = pageLimit(asked, LIMITS)
  const status = statusOf(asked)
  const from = placeOf(asked)
  stored(from?.id ?? '')
  const isInPage = ({ id, createdAt }: Row): boolean => {
    if (from === undefined) return true
    const time = BigInt(createdAt)
    return time < from.timeMs || (time === from.timeMs && id <= from.id)
  }
  const found = [...rows.values()]
    .filter((row) => (status === undefined || row.status === status) && isInPage(row))
    .sort((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? 1 : -1))
  const users = found.slice(0, limit).map(({ id: _, user, ...row }) => {
    return withoutAbsent({ ...user, ...row })
  })
  const next = found[limit]
  if (next === undefined) return { status: 'OK', users }
  return { status: 'OK', users, nextPaginationToken: tokenOf(next.id, next.createdAt) }
}

function count({ query: asked }: Call, { rows }: Tables): object {
  const status = statusOf(asked)
  const all = [...rows.values()]
  return { status: 'OK', count: all.filter((row) => (status ?? row.status) === row.status).length }
}

function remove(text: string, tables: Tables): object {
  const ids = field(parseObject(text), 'ids', Array.isArray)
  if (ids.length > MAX_DELETED) {
    throw new BadInput(`Field name 'ids' cannot contain more than ${MAX_DELETED} elements`)
  }
  for (const id of ids) {
    if (!isString(id)) throw new BadInput("Field name 'ids' is invalid in JSON input")
    if (id === '') throw new BadInput("Field name 'ids' cannot contain an empty string")
  }
  const deleted = new Set(ids.filter((id) => tables.rows.has(id)))
  tables.change({ rowsGone: [...deleted] })
  // In the order of the request; an id that is given twice is answered twice.
  return {
    deletedIds: ids.filter((id) => deleted.has(id)),
    invalidIds: ids.filter((id) => !deleted.has(id)),
  }
}

function statusOf(asked: URLSearchParams): RowStatus | undefined {
  const text = asked.get('status')
  if (text === null) return undefined
  const status = ROW_STATUSES.find((name) => name === text)
  if (status !== undefined) return status
  throw new BadInput('Invalid value for status. Pass one of NEW, PROCESSING, or FAILED!')
}

/**
 * Makes the account immediately and returns it.
 * @throws {BadInput} for everything that the core refuses
 */
async function importDirectly(value: JsonObject, { tables, context }: BulkParts): Promise<object> {
  const settings = context()
  const reading = readUser(value, settings)
  if ('errors' in reading) throw refusal(reading.errors)
  const { user } = reading
  await importUsers(tables, [user], { settings }).catch((error) => {
    if (error instanceof BlamedFault) throw refusal([...error.texts.values()])
    if (error instanceof ChunkFault) throw refusal([`${error.javaClass}: ${error.message}`])
    if (error instanceof DatabaseFault) throw refusal([error.message])
    throw error
  })
  const account = accountOf(tables, user.id)
  if (account === undefined) throw new Error('the import has made no account')
  return { status: 'OK', user: shownAccount(account, tables) }
}

function refusal(errors: readonly string[]): BadInput {
  return new BadInput(JSON.stringify({ errors }))
}
