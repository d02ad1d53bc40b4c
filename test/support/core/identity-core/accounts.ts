import { Refused } from '../../../../src/testing/core/mint.js'
import { isStorable, UNSTORABLE } from './import-faults.js'
import type { LoginMethod } from './imported-user.js'
import { type JsonObject, withoutAbsent } from './input.js'
import { noSuchTenant } from './router.js'
import { type Account, infosOf, keyOf, type Tables } from './tables.js'

/** @throws {Refused} for a text of a look-up with a NUL, which the core's database does not take */
export function stored(text: string): string {
  if (!isStorable(text)) throw new Refused(500, UNSTORABLE)
  return text
}

/** @throws {BadInput} if there is no such tenant */
export function assertTenant({ tenants }: Tables, tenantId: string): void {
  if (!tenants.has(tenantId)) throw noSuchTenant(tenantId)
}

/** Returns the account of a login method, by external id or the core's id. */
export function accountOf(tables: Tables, userId: string): Account | undefined {
  const coreId = tables.coreIds.get(userId) ?? userId
  return tables.accounts.get(tables.accountOf.get(coreId) ?? '')
}

/** By age; of equally old ones the one with the later id is first. */
function byAge(one: Account, other: Account): number {
  if (one.timeJoined !== other.timeJoined) return one.timeJoined - other.timeJoined
  return one.id < other.id ? 1 : -1
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

/** The values to look up; absent members are ignored. */
export type AccountInfo = Pick<
  LoginMethod,
  'email' | 'phoneNumber' | 'thirdPartyId' | 'thirdPartyUserId'
>

/** Returns the accounts that have one (`any`) or all of the values in the tenant, oldest first. */
export function findAccounts(
  { accounts, holders }: Tables,
  tenantId: string,
  { info, match }: { readonly info: AccountInfo; readonly match: 'any' | 'all' },
): Account[] {
  const keys = infosOf(info).map((value) => keyOf({ tenantId, value: stored(value) }))
  const found = keys.map((key) => holders.get(key) ?? new Set<string>())
  const all = distinct(found.flatMap((ids) => [...ids]))
  const ids = match === 'any' ? all : all.filter((id) => found.every((some) => some.has(id)))
  return ids.flatMap((id) => accounts.get(id) ?? []).toSorted(byAge)
}

/** The accounts with a login method of one of these recipes (all without any) in the tenant; in all without one. */
export function accountsIn(
  { accounts }: Tables,
  tenantId: string | undefined,
  recipeIds: readonly string[],
): Account[] {
  return [...accounts.values()].filter(({ methods }) =>
    methods.some((method) => {
      const isThere = tenantId === undefined || method.tenantIds.includes(tenantId)
      return isThere && (recipeIds.length === 0 || recipeIds.includes(method.recipeId))
    }),
  )
}

export interface AccountPage {
  readonly order: 'ASC' | 'DESC'
  readonly limit: number
  /** The first account of the page. */
  readonly from?: { readonly id: string; readonly timeMs: bigint } | undefined
}

/** Returns a page of accounts by age, and one more than it holds if there are more. */
export function pageOf(accounts: readonly Account[], { order, limit, from }: AccountPage) {
  const sign = order === 'ASC' ? 1 : -1
  const isInPage = ({ id, timeJoined }: Account): boolean => {
    if (from === undefined) return true
    const time = BigInt(timeJoined)
    if (time === from.timeMs) return id <= from.id
    return order === 'ASC' ? time > from.timeMs : time < from.timeMs
  }
  return accounts
    .filter(isInPage)
    .toSorted((one, other) => {
      const isSameAge = one.timeJoined === other.timeJoined
      return isSameAge ? byAge(one, other) : sign * byAge(one, other)
    })
    .slice(0, limit + 1)
}

/**
 * Deletes an account and the data under its ids, or only one login method. The account is deleted
 * with its last method.
 */
export function deleteUser(tables: Tables, userId: string, withLinkedAccounts: boolean): void {
  const account = accountOf(tables, userId)
  if (account === undefined) return
  const coreId = tables.coreIds.get(userId) ?? userId
  const isGone = (method: LoginMethod) => withLinkedAccounts || method.superTokensUserId === coreId
  const gone = account.methods.filter(isGone).map(({ superTokensUserId }) => superTokensUserId)
  const left = account.methods.filter((method) => !isGone(method))
  tables.change({
    ...(left.length === 0
      ? { accountsGone: [account.id] }
      : { accounts: [{ ...account, methods: left }] }),
    dataGone: gone.flatMap((id) => [id, tables.externalIds.get(id) ?? id]),
    mappingsGone: gone,
  })
}
