import { BadInput, field, isBoolean, isString, optionalField, parseObject } from '../json-input.js'
import type { Call, Route } from '../router.js'
import { accountIdOf, deleteUser, readAccount, readAccounts } from './accounts.js'
import type { Database } from './database.js'
import { countAccounts, findAccounts, listAccounts } from './find-accounts.js'
import { trim } from './java-text.js'
import { normaliseEmail, normalisePhoneNumber } from './normalise.js'
import { pageLimit, placeOf, requiredText, tokenOf } from './query-input.js'
import { assertTenant } from './tenants.js'

const LIMITS = { fallback: 100, largest: 500, tooLarge: 'max limit allowed is 500' }
const RECIPE_IDS = ['emailpassword', 'thirdparty', 'passwordless', 'webauthn']
const MAPPING_KINDS = ['SUPERTOKENS', 'EXTERNAL', 'ANY']

/** The routes for accounts and their ids. */
export function accountRoutes(database: Database): [string, Route][] {
  const { query } = database
  const ok = (body: object) => ({ status: 200, body: { status: 'OK', ...body } })
  const get = (tenants: Route['tenants'], answerTo: (call: Call) => Promise<object>): Route => {
    return { tenants, answers: { GET: async (call) => ok(await answerTo(call)) } }
  }
  return [
    ['/recipe/userid/map', get('refused', mapping)],
    ['/user/id', get('refused', userById)],
    ['/users/by-accountinfo', get('served', usersWith)],
    ['/users', get('served', users)],
    ['/users/count', get('served', count)],
    [
      '/user/remove',
      { tenants: 'refused', answers: { POST: async ({ body }) => ok(await remove(await body())) } },
    ],
  ]

  async function mapping({ query: asked }: Call): Promise<object> {
    const userId = trim(requiredText(asked, 'userId'))
    if (userId === '') throw new BadInput("Field name 'userId' cannot be an empty String")
    const kind = trim(asked.get('userIdType') ?? 'ANY')
    if (!MAPPING_KINDS.includes(kind)) {
      const names = "'SUPERTOKENS', 'EXTERNAL' or 'ANY'"
      throw new BadInput(`Field name 'userIdType' should be one of ${names}`)
    }
    const [row] = await query<{ core_id: string; external_id: string }>(
      `select core_id, external_id from userid_mapping
       where (core_id = $1 and $2 <> 'EXTERNAL') or (external_id = $1 and $2 <> 'SUPERTOKENS')
       order by core_id = $1 desc`,
      [userId, kind],
    )
    if (row === undefined) return { status: 'UNKNOWN_MAPPING_ERROR' }
    return { superTokensUserId: row.core_id, externalUserId: row.external_id }
  }

  async function userById({ query: asked }: Call): Promise<object> {
    const id = await accountIdOf(query, requiredText(asked, 'userId'))
    const user = id === undefined ? undefined : await readAccount(query, id)
    return user === undefined ? { status: 'UNKNOWN_USER_ID_ERROR' } : { user }
  }

  async function usersWith({ query: asked, tenantId }: Call): Promise<object> {
    const isUnion = requiredText(asked, 'doUnionOfAccountInfo')
    if (isUnion !== 'true' && isUnion !== 'false') {
      throw new BadInput("'doUnionOfAccountInfo' should be either 'true' or 'false'")
    }
    const email = asked.get('email')
    const phoneNumber = asked.get('phoneNumber')
    const info = {
      email: email === null ? undefined : normaliseEmail(email),
      phoneNumber: phoneNumber === null ? undefined : normalisePhoneNumber(phoneNumber),
      thirdParty: thirdPartyOf(asked),
    }
    await assertTenant(query, tenantId)
    const match = isUnion === 'true' ? 'any' : 'all'
    const ids = await findAccounts(query, tenantId, { info, match })
    return { users: await readAccounts(query, ids) }
  }

  async function users({ query: asked, tenantId }: Call): Promise<object> {
    const recipeIds = recipeIdsOf(asked)
    await assertTenant(query, tenantId)
    const order = asked.get('timeJoinedOrder') ?? 'ASC'
    if (order !== 'ASC' && order !== 'DESC') {
      throw new BadInput('timeJoinedOrder can be either ASC OR DESC')
    }
    const limit = pageLimit(asked, LIMITS)
    const place = placeOf(asked)
    const from = place && { id: place.id, timeJoined: place.timeMs }
    const places = await listAccounts(query, tenantId, { order, limit, from, recipeIds })
    const found = await readAccounts(
      query,
      places.slice(0, limit).map(({ id }) => id),
    )
    const page = { users: order === 'ASC' ? found : found.toReversed() }
    const next = places[limit]
    if (next === undefined) return page
    return { ...page, nextPaginationToken: tokenOf(next.id, next.time_joined) }
  }

  async function count({ query: asked, tenantId }: Call): Promise<object> {
    const recipeIds = recipeIdsOf(asked)
    const isOfAll = asked.get('includeAllTenants')?.toLowerCase() === 'true'
    if (!isOfAll) await assertTenant(query, tenantId)
    return { count: await countAccounts(query, isOfAll ? undefined : tenantId, recipeIds) }
  }

  async function remove(text: string): Promise<object> {
    const body = parseObject(text)
    const userId = field(body, 'userId', isString)
    const isAll = optionalField(body, 'removeAllLinkedAccounts', isBoolean) ?? true
    await database.transaction((inTransaction) => deleteUser(inTransaction, userId, isAll))
    return {}
  }
}

function thirdPartyOf(asked: URLSearchParams): { id: string; userId: string } | undefined {
  const id = asked.get('thirdPartyId')
  const userId = asked.get('thirdPartyUserId')
  if (id !== null && userId !== null) return { id, userId }
  if (id === userId) return undefined
  const both = "'thirdPartyUserId' must also be provided, and vice versa"
  throw new BadInput(`If 'thirdPartyId' is provided, ${both}`)
}

function recipeIdsOf(asked: URLSearchParams): string[] {
  const names = (asked.get('includeRecipeIds') ?? '').split(',').map(trim)
  const recipeIds = names.filter((name) => name !== '')
  const unknown = recipeIds.find((name) => !RECIPE_IDS.includes(name))
  if (unknown !== undefined) throw new BadInput(`Unknown recipe ID: ${unknown}`)
  return recipeIds
}
