import { accountOf, shownAccount } from './accounts.js'
import { BlamedFault, ChunkFault, DatabaseFault } from './import-faults.js'
import { importUsers } from './import-users.js'
import type { ImportedUser, LoginMethod, ReadContext } from './imported-user.js'
import { badInput, field, type JsonObject, withoutAbsent } from './input.js'
import { readUser } from './read-user.js'
import type { Routes } from './router.js'
import type { Row, Tables } from './tables.js'

const MAX_STAGED = 10_000
const MAX_DELETED = 500
const DEFAULT_LIMIT = 100
const MAX_LIMIT = 500

interface BulkParts {
  readonly tables: Tables
  readonly context: () => ReadContext
  readonly clock: () => number
}

/** The five operations of the bulk import. */
export function bulkRoutes(parts: BulkParts): Routes {
  const { tables } = parts
  return {
    'POST /bulk-import/users': { answer: ({ body }) => stage(body, parts) },
    'GET /bulk-import/users': { answer: ({ query }) => list(query, tables) },
    'GET /bulk-import/users/count': {
      answer({ query }) {
        const status = statusOf(query)
        const rows = [...tables.rows.values()]
        const isCounted = (row: Row) => (status ?? row.status) === row.status
        return { status: 'OK', count: rows.filter(isCounted).length }
      },
    },
    'POST /bulk-import/users/remove': { answer: ({ body }) => remove(body, tables) },
    'POST /bulk-import/import': { answer: ({ body }) => importDirectly(body, parts) },
  }
}

/** All or nothing: one invalid user refuses the whole call. */
function stage(body: JsonObject, { tables, context, clock }: BulkParts): object {
  const values = field(body, 'users', 'list')
  if (values.length === 0) return { status: 'OK' }
  if (values.length > MAX_STAGED) {
    const error = `You can only add ${MAX_STAGED} users at a time.`
    throw badInput(JSON.stringify({ error }))
  }
  const settings = context()
  const staged: ImportedUser[] = []
  const refused: { index: number; errors: readonly string[] }[] = []
  for (const [index, value] of values.entries()) {
    const reading = readUser(value, settings)
    if ('user' in reading) staged.push(reading.user)
    else refused.push({ index, errors: reading.errors })
  }
  if (refused.length > 0) throw badInput(JSON.stringify({ error: HAS_INVALID, users: refused }))
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

/** The core spells some members differently than in the request. */
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
function list(query: URLSearchParams, { rows }: Tables): object {
  const limit = limitOf(query)
  const status = statusOf(query)
  const from = placeOf(query)
  const isInPage = ({ id, createdAt }: Row): boolean => {
    if (from === undefined) return true
    return createdAt < from.timeMs || (createdAt === from.timeMs && id <= from.id)
  }
  const found = [...rows.values()]
    .filter((row) => (status ?? row.status) === row.status && isInPage(row))
    .sort((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? 1 : -1))
  const users = found.slice(0, limit).map(({ id: _, user, ...row }) => {
    return withoutAbsent({ ...user, ...row })
  })
  const next = found[limit]
  if (next === undefined) return { status: 'OK', users }
  const nextPaginationToken = Buffer.from(`${next.id};${next.createdAt}`).toString('base64')
  return { status: 'OK', users, nextPaginationToken }
}

function limitOf(query: URLSearchParams): number {
  const limit = Number(query.get('limit') ?? DEFAULT_LIMIT)
  if (limit > MAX_LIMIT) throw badInput(`Max limit allowed is ${MAX_LIMIT}`)
  if (limit < 1) throw badInput('limit must a positive integer with min value 1')
  return limit
}

/** Returns the place in a pagination token: an id and a time. */
function placeOf(query: URLSearchParams): { id: string; timeMs: number } | undefined {
  const token = query.get('paginationToken')
  if (token === null) return undefined
  const [, id = '', time] = /^([^;]+);(\d+)$/.exec(Buffer.from(token, 'base64').toString()) ?? []
  if (time === undefined) throw badInput('invalid pagination token')
  return { id, timeMs: Number(time) }
}

const statusOf = (query: URLSearchParams): string | undefined => query.get('status') ?? undefined

function remove(body: JsonObject, tables: Tables): object {
  const ids = field(body, 'ids', 'list')
  if (ids.length > MAX_DELETED) {
    throw badInput(`Field name 'ids' cannot contain more than ${MAX_DELETED} elements`)
  }
  const texts = ids.map(String)
  const rowsGone = new Set(texts.filter((id) => tables.rows.has(id)))
  tables.change({ rowsGone: [...rowsGone] })
  // In the order of the request; an id that is given twice is answered twice.
  return {
    deletedIds: texts.filter((id) => rowsGone.has(id)),
    invalidIds: texts.filter((id) => !rowsGone.has(id)),
  }
}

/**
 * Makes the account immediately and returns it.
 * @throws {Refused} for everything that the core refuses
 */
async function importDirectly(body: JsonObject, { tables, context }: BulkParts): Promise<object> {
  const settings = context()
  const reading = readUser(body, settings)
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

const refusal = (errors: readonly string[]): Error => badInput(JSON.stringify({ errors }))
