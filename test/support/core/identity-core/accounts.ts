import type { LoginMethod } from './imported-user.js'
import type { JsonObject } from './input.js'
import { field, optionalField, requiredText, trim, withoutAbsent } from './input.js'
import { normaliseEmail, normalisePhoneNumber } from './normal-forms.js'
import { type Call, noSuchTenant, type Routes } from './router.js'
import { type Account, infosOf, keyOf, type Tables } from './tables.js'

/** The routes for accounts and their ids. */
export function accountRoutes(tables: Tables): Routes {
  return {
    'GET /recipe/userid/map': { answer: ({ query }) => mapping(query, tables) },
    'GET /user/id': {
      answer({ query }) {
        const account = accountOf(tables, requiredText(query, 'userId'))
        if (account === undefined) return { status: 'UNKNOWN_USER_ID_ERROR' }
        return { status: 'OK', user: shownAccount(account, tables) }
      },
    },
    'GET /users/by-accountinfo': { isPerTenant: true, answer: (call) => usersWith(call, tables) },
    'POST /user/remove': {
      answer({ body }) {
        const userId = field(body, 'userId', 'string')
        optionalField(body, 'removeAllLinkedAccounts', 'boolean')
        deleteUser(tables, userId)
        return { status: 'OK' }
      },
    },
  }
}

function mapping(query: URLSearchParams, tables: Tables): object {
  const userId = trim(requiredText(query, 'userId'))
  const kind = query.get('userIdType') ?? 'ANY'
  const asCoreId = kind === 'EXTERNAL' ? undefined : tables.externalIds.get(userId)
  const coreId = kind === 'SUPERTOKENS' ? undefined : tables.coreIds.get(userId)
  if (asCoreId !== undefined) {
    return { status: 'OK', superTokensUserId: userId, externalUserId: asCoreId }
  }
  if (coreId === undefined) return { status: 'UNKNOWN_MAPPING_ERROR' }
  return { status: 'OK', superTokensUserId: coreId, externalUserId: userId }
}

/** The accounts that have all of the values in the tenant, or any of them, oldest first. */
function usersWith({ query, tenantId }: Call, tables: Tables): object {
  const isUnion = requiredText(query, 'doUnionOfAccountInfo')
  const email = query.get('email')
  const phoneNumber = query.get('phoneNumber')
  const thirdPartyId = query.get('thirdPartyId') ?? undefined
  const thirdPartyUserId = query.get('thirdPartyUserId') ?? undefined
  assertTenant(tables, tenantId)
  const values = infosOf({
    email: email === null ? undefined : normaliseEmail(email),
    phoneNumber: phoneNumber === null ? undefined : normalisePhoneNumber(phoneNumber),
    thirdPartyId,
    thirdPartyUserId,
  })
  const found = values.map((value) => {
    return tables.holders.get(keyOf({ tenantId, value: value })) ?? new Set<string>()
  })
  const isFound = (id: string) => isUnion === 'true' || found.every((some) => some.has(id))
  const accounts = [...new Set(found.flatMap((ids) => [...ids]))]
    .filter(isFound)
    .flatMap((id) => tables.accounts.get(id) ?? [])
    .toSorted((one, other) => one.timeJoined - other.timeJoined)
  return { status: 'OK', users: accounts.map((account) => shownAccount(account, tables)) }
}

/** @throws {Refused} if there is no such tenant */
export function assertTenant({ tenants }: Tables, tenantId: string): void {
  if (!tenants.has(tenantId)) throw noSuchTenant(tenantId)
}

/** Returns the account of a login method, by external id or the core's id. */
export function accountOf(tables: Tables, userId: string): Account | undefined {
  const coreId = tables.coreIds.get(userId) ?? userId
  return tables.accounts.get(tables.accountOf.get(coreId) ?? '')
}

/** Returns an account as the core shows it. */
export function shownAccount(account: Account, { externalIds }: Tables): JsonObject {
  const { id, isPrimary, timeJoined } = account
  const methods = account.methods.toSorted(
    (one, other) => one.timeJoinedInMSSinceEpoch - other.timeJoinedInMSSinceEpoch,
  )
  const loginMethods = methods.map((method) => shownMethod(method, externalIds))
  const thirdParty = loginMethods.flatMap((method) => method.thirdParty ?? [])
  return {
    id: externalIds.get(id) ?? id,
    isPrimaryUser: isPrimary,
    tenantIds: distinct(methods.flatMap(({ tenantIds }) => tenantIds)),
    timeJoined,
    emails: distinct(methods.flatMap(({ email }) => email ?? [])),
    phoneNumbers: distinct(methods.flatMap(({ phoneNumber }) => phoneNumber ?? [])),
    thirdParty: [...new Map(thirdParty.map((pair) => [JSON.stringify(pair), pair])).values()],
    webauthn: { credentialIds: [] },
    loginMethods,
  }
}

function shownMethod(method: LoginMethod, externalIds: Tables['externalIds']) {
  const { superTokensUserId: id, thirdPartyId, thirdPartyUserId } = method
  return withoutAbsent({
    tenantIds: method.tenantIds,
    recipeUserId: externalIds.get(id) ?? id,
    verified: method.isVerified,
    timeJoined: method.timeJoinedInMSSinceEpoch,
    recipeId: method.recipeId,
    email: method.email,
    phoneNumber: method.phoneNumber,
    thirdParty: thirdPartyId && { id: thirdPartyId, userId: thirdPartyUserId },
  })
}

function distinct(texts: readonly string[]): string[] {
  return [...new Set(texts)]
}

/** Deletes an account with all its login methods, and the data under their ids. */
function deleteUser(tables: Tables, userId: string): void {
  const account = accountOf(tables, userId)
  if (account === undefined) return
  const mappingsGone = account.methods.map(({ superTokensUserId }) => superTokensUserId)
  const dataGone = mappingsGone.flatMap((id) => [id, tables.externalIds.get(id) ?? id])
  tables.change({ accountsGone: [account.id], dataGone, mappingsGone })
}
