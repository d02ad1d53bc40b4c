import {
  accountOf,
  accountsIn,
  assertTenant,
  deleteUser,
  findAccounts,
  pageOf,
  shownAccount,
  stored,
} from './accounts.js'
import {
  BadInput,
  field,
  isBoolean,
  isString,
  optionalField,
  pageLimit,
  parseObject,
  placeOf,
  requiredText,
  tokenOf,
  trim,
} from './input.js'
import { normaliseEmail, normalisePhoneNumber } from './read-login-method.js'
import type { Call, Route } from './router.js'
import type { Tables } from './tables.js'

const LIMITS = { fallback: 100, largest: 500, tooLarge: 'max limit allowed is 500' }
const RECIPE_IDS = ['emailpassword', 'thirdparty', 'passwordless', 'webauthn']
const MAPPING_KINDS = ['SUPERTOKENS', 'EXTERNAL', 'ANY']

/** The routes for accounts and their ids. */
export function accountRoutes(tables: Tables): [string, Route][] {
  const ok = (body: object) => ({ status: 200, body: { status: 'OK', ...body } })
  const get = (tenants: Route['tenants'], answerTo: (call: Call) => object): Route => {
    return { tenants, answers: { GET: (call) => ok(answerTo(call)) } }
  }
  return [
    ['/recipe/userid/map', get('refused', mapping)],
    ['/user/id', get('refused', userById)],
    ['/users/by-accountinfo', get('served', usersWith)],
    ['/users', get('served', users)],
    ['/users/count', get('served', count)],
    [
      '/user/remove',
      { tenants: 'refused', answers: { POST: async ({ body }) => ok(remove(await body())) } },
    ],
  ]

  function mapping({ query: asked }: Call): object {
    const userId = trim(requiredText(asked, 'userId'))
    if (userId === '') throw new BadInput("Field name 'userId' cannot be an empty String")
    const kind = trim(asked.get('userIdType') ?? 'ANY')
    if (!MAPPING_KINDS.includes(kind)) {
      const names = "'SUPERTOKENS', 'EXTERNAL' or 'ANY'"
      throw new BadInput(`Field name 'userIdType' should be one of ${names}`)
    }
    stored(userId)
    const asCoreId = kind === 'EXTERNAL' ? undefined : tables.externalIds.get(userId)
    if (asCoreId !== undefined) return { superTokensUserId: userId, externalUserId: asCoreId }
    const coreId = kind === 'SUPERTOKENS' ? undefined : tables.coreIds.get(userId)
    if (coreId === undefined) return { status: 'UNKNOWN_MAPPING_ERROR' }
    return { superTokensUserId: coreId, externalUserId: userId }
  }

  function userById({ query: asked }: Call): object {
    const account = accountOf(tables, stored(requiredText(asked, 'userId')))
    if (account === undefined) return { status: 'UNKNOWN_USER_ID_ERROR' }
    return { user: shownAccount(account, tables) }
  }

  function usersWith({ query: asked, tenantId }: Call): object {
    const isUnion = requiredText(asked, 'doUnionOfAccountInfo')
    if (isUnion !== 'true' && isUnion !== 'false') {
      throw new BadInput("'doUnionOfAccountInfo' should be either 'true' or 'false'")
    }
    const email = asked.get('email')
    const phoneNumber = asked.get('phoneNumber')
    const info = {
      email: email === null ? undefined : normaliseEmail(email),
      phoneNumber: phoneNumber === null ? undefined : normalisePhoneNumber(phoneNumber),
      ...thirdPartyOf(asked),
    }
    assertTenant(tables, tenantId)
    const match = isUnion === 'true' ? 'any' : 'all'
    const found = findAccounts(tables, tenantId, { info, match })
    return { users: found.map((account) => shownAccount(account, tables)) }
  }

  function users({ query: asked, tenantId }: Call): object {
    const recipeIds = recipeIdsOf(asked)
    assertTenant(tables, tenantId)
    const order = asked.get('timeJoinedOrder') ?? 'ASC'
    if (order !== 'ASC' && order !== 'DESC') {
      throw new BadInput('timeJoinedOrder can be either ASC OR DESC')
    }
    const limit = pageLimit(asked, LIMITS)
    const from = placeOf(asked)
    stored(from?.id ?? '')
    const accounts = pageOf(accountsIn(tables, tenantId, recipeIds), { order, limit, from })
    const found = accounts.slice(0, limit)
    const page = { users: found.map((account) => shownAccount(account, tables)) }
    const next = accounts[limit]
    if (next === undefined) return page
    return { ...page, nextPaginationToken: tokenOf(next.id, next.timeJoined) }
  }

  function count({ query: asked, tenantId }: Call): object {
    const recipeIds = recipeIdsOf(asked)
    const isOfAll = asked.get('includeAllTenants')?.toLowerCase() === 'true'
    if (!isOfAll) assertTenant(tables, tenantId)
    return { count: accountsIn(tables, isOfAll ? undefined : tenantId, recipeIds).length }
  }

  function remove(text: string): object {
    const body = parseObject(text)
    const userId = field(body, 'userId', isString)
    const isAll = optionalField(body, 'removeAllLinkedAccounts', isBoolean) ?? true
    deleteUser(tables, userId, isAll)
    return {}
  }
}

function thirdPartyOf(asked: URLSearchParams) {
  const thirdPartyId = asked.get('thirdPartyId')
  const thirdPartyUserId = asked.get('thirdPartyUserId')
  if (thirdPartyId !== null && thirdPartyUserId !== null) return { thirdPartyId, thirdPartyUserId }
  if (thirdPartyId === thirdPartyUserId) return {}
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
