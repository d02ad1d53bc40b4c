import { BadInput, field, isString, parseObject } from '../json-input.js'
import type { Call, Route } from '../router.js'
import type { BulkParts } from './bulk-parts.js'
import type { Query } from './database.js'
import { importDirectly } from './direct-import.js'
import type { ImportedUser } from './imported-user.js'
import { pageLimit, placeOf, tokenOf } from './query-input.js'
import { readUser } from './read-user.js'
import {
  addRows,
  countRows,
  deleteRows,
  listRows,
  ROW_STATUSES,
  type RowStatus,
  toShownRow,
} from './rows.js'
import { toStagedUser } from './staged-user.js'

const MAX_STAGED = 10_000
const MAX_DELETED = 500
const LIMITS = { fallback: 100, largest: 500, tooLarge: 'Max limit allowed is 500' }

/** The five operations of the bulk import. */
export function bulkRoutes(parts: BulkParts): [string, Route][] {
  const { query } = parts.database
  const own = {
    tenants: 'refused',
    ...(parts.largestBodyBytes === undefined ? {} : { largestBodyBytes: parts.largestBodyBytes }),
  } as const
  const ok = (body: object) => ({ status: 200, body })
  return [
    [
      '/bulk-import/users',
      {
        ...own,
        answers: {
          POST: async ({ body }) => ok(await stage(await body(), parts)),
          GET: async (call) => ok(await list(call, query)),
        },
      },
    ],
    [
      '/bulk-import/users/count',
      { ...own, answers: { GET: async (call) => ok(await count(call)) } },
    ],
    [
      '/bulk-import/users/remove',
      { ...own, answers: { POST: async ({ body }) => ok(await remove(await body(), query)) } },
    ],
    [
      '/bulk-import/import',
      { ...own, answers: { POST: async ({ body }) => ok(await importOne(await body())) } },
    ],
  ]

  async function count({ query: asked }: Call): Promise<object> {
    return { status: 'OK', count: await countRows(query, statusOf(asked)) }
  }

  async function importOne(text: string): Promise<object> {
    return { status: 'OK', user: await importDirectly(parseObject(text), parts) }
  }
}

/** The answers of a core without a persistent database to the five operations. */
export function inMemoryRoutes(): [string, Route][] {
  const refuse = () => {
    throw new BadInput('This API is not supported in the in-memory database.')
  }
  const route = (...methods: string[]): Route => {
    return { tenants: 'served', answers: Object.fromEntries(methods.map((name) => [name, refuse])) }
  }
  return [
    ['/bulk-import/users', route('GET', 'POST')],
    ['/bulk-import/users/count', route('GET')],
    ['/bulk-import/users/remove', route('POST')],
    ['/bulk-import/import', route('POST')],
  ]
}

/** All or nothing: one invalid user refuses the whole call. */
async function stage(text: string, parts: BulkParts): Promise<object> {
  const { database, contextFor, clock, listsStagedUsers } = parts
  const values = field(parseObject(text), 'users', Array.isArray)
  if (values.length === 0) return { status: 'OK' }
  if (values.length > MAX_STAGED) {
    const error = `You can only add ${MAX_STAGED} users at a time.`
    throw new BadInput(JSON.stringify({ error }))
  }
  const context = await contextFor(database.query)
  const staged: ImportedUser[] = []
  const refused: { index: number; errors: readonly string[] }[] = []
  for (const [index, value] of values.entries()) {
    const reading = readUser(value, context)
    if ('user' in reading) staged.push(reading.user)
    else refused.push({ index, errors: reading.errors })
  }
  if (refused.length > 0) throw new BadInput(JSON.stringify({ error: HAS_INVALID, users: refused }))
  await addRows(database.query, staged, clock())
  return listsStagedUsers ? { status: 'OK', users: staged.map(toStagedUser) } : { status: 'OK' }
}

const HAS_INVALID =
  'Data has missing or invalid fields. Please check the users field for more details.'

async function list({ query: asked }: Call, query: Query): Promise<object> {
  const limit = pageLimit(asked, LIMITS)
  const status = statusOf(asked)
  const place = placeOf(asked)
  const from = place && { id: place.id, createdAt: place.timeMs }
  const rows = await listRows(query, { status, from, limit: limit + 1 })
  const users = rows.slice(0, limit).map(toShownRow)
  const next = rows[limit]
  if (next === undefined) return { status: 'OK', users }
  return { status: 'OK', users, nextPaginationToken: tokenOf(next.id, next.created_at) }
}

async function remove(text: string, query: Query): Promise<object> {
  const ids = field(parseObject(text), 'ids', Array.isArray)
  if (ids.length > MAX_DELETED) {
    throw new BadInput(`Field name 'ids' cannot contain more than ${MAX_DELETED} elements`)
  }
  for (const id of ids) {
    if (!isString(id)) throw new BadInput("Field name 'ids' is invalid in JSON input")
    if (id === '') throw new BadInput("Field name 'ids' cannot contain an empty string")
  }
  const deleted = new Set(ids.length === 0 ? [] : await deleteRows(query, ids))
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
