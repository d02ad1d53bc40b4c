import { setTimeout as delay } from 'node:timers/promises'
import {
  BlamedFault,
  ChunkFault,
  DatabaseFault,
  deviceFault,
  type GivenRole,
  loginText,
  primaryText,
  roleTwice,
  STATEMENTS_OF_BATCH,
  takenIdText,
  takenLoginText,
  tenantText,
} from './import-faults.js'
import {
  type ImportedUser,
  type ImportRules,
  type ImportSettings,
  isLinkingEnabled,
  type LoginMethod,
  ownId,
  type UserRole,
} from './imported-user.js'
import { PLAIN } from './sign-in.js'
import {
  type Account,
  type Change,
  type Held,
  heldBy,
  infosOf,
  keyOf,
  loginsOf,
  type Tables,
  type UserData,
} from './tables.js'

/** Long enough for another import to come between what an import has read and its commit. */
const PAUSE_MS = 2

/**
 * Makes accounts of the users: all of them, or none if it throws. The indexes are checked when it commits, after a
 * pause, so that of two imports of one login at once the later one is refused. `stillWanted` is asked at the commit.
 * @throws {BlamedFault | ChunkFault | DatabaseFault}
 */
export async function importUsers(
  tables: Tables,
  users: readonly ImportedUser[],
  { settings, stillWanted = () => true }: Commit,
): Promise<void> {
  const hashed = users.map(withHashes)
  await delay(PAUSE_MS)
  const wanted = hashed.filter(({ id }) => stillWanted(id))
  tables.change(changeFor(tables, wanted, settings))
}

export interface Commit {
  readonly settings: ImportSettings
  readonly stillWanted?: (rowId: string) => boolean
}

/** In the order of the core's steps, which decides what it finds first. */
function changeFor(
  tables: Tables,
  users: readonly ImportedUser[],
  settings: ImportSettings,
): Change {
  const { rules, features } = settings
  assertStorable(users)
  const linked = new Set(users.filter((user) => isLinked(user, rules)))
  const checkPrimaries = () => {
    if (linked.size > 0 && !isLinkingEnabled(features)) throw new ChunkFault(NO_LINKING)
    assertPrimaryInfosFree(tables, [...linked], rules)
  }
  if (rules.reservesPrimaryInfos) checkPrimaries()
  assertLoginsFree(tables, users, settings)
  if (!rules.reservesPrimaryInfos) {
    assertOtherTenantsFree(tables, users)
    checkPrimaries()
  }
  assertExternalIdsFree(tables, users, rules)
  assertDevices(users, settings)
  assertRoles(tables, users)
  return {
    accounts: users.flatMap((user) => accountsOf(user, linked.has(user))),
    mappings: users.flatMap(({ id, externalUserId }) => {
      return externalUserId === undefined ? [] : [[id, externalUserId] as const]
    }),
    data: users.map(dataOf),
  }
}

const NO_LINKING =
  'E019: Account linking feature is not enabled for this app. Please contact support to enable it.'

/** Whether the user's methods become one primary account. */
function isLinked({ loginMethods }: ImportedUser, { linksWithoutPrimary }: ImportRules): boolean {
  const isOneOfSeveral = linksWithoutPrimary && loginMethods.length > 1
  return isOneOfSeveral || loginMethods.some((method) => method.isPrimary)
}

interface Wanted extends Held {
  /** One holder may want a value twice: two methods of a primary account can have the same e-mail address. */
  readonly holder: string
}

/** Returns the values that are taken, or that an earlier holder wants. */
function conflictsIn<Want extends Wanted>(
  wanted: readonly Want[],
  isTaken: (key: string) => boolean,
): Want[] {
  const holders = new Map<string, string>()
  return wanted.filter((want) => {
    const key = keyOf(want)
    const holder = holders.get(key) ?? want.holder
    holders.set(key, holder)
    return isTaken(key) || holder !== want.holder
  })
}

/** @throws {BlamedFault} E022 */
function assertPrimaryInfosFree(
  { accounts, holders }: Tables,
  users: readonly ImportedUser[],
  { reservesPrimaryInfos }: ImportRules,
): void {
  const wanted = users.flatMap((user) =>
    user.loginMethods.flatMap((method) =>
      heldBy(method, infosOf).map((held) => {
        // Up to 11.4, the core does not compare the users of a chunk with each other: all become primary.
        return { ...held, user, holder: reservesPrimaryInfos ? user.id : '' }
      }),
    ),
  )
  const isTaken = (key: string) =>
    [...(holders.get(key) ?? [])].some((id) => accounts.get(id)?.isPrimary)
  const conflicts = conflictsIn(wanted, isTaken)
  const blamed = reservesPrimaryInfos ? conflicts.slice(0, 1) : conflicts
  if (blamed.length === 0) return
  throw new BlamedFault(new Map(blamed.map(({ user }) => [user.id, primaryText(user)])))
}

const RECIPES_IN_ORDER = ['emailpassword', 'thirdparty', 'passwordless']

interface WantedLogin extends Wanted {
  readonly method: LoginMethod
  readonly isPhone: boolean
  /** The position of the method among those of its recipe in the chunk. */
  readonly position: number
}

/**
 * The core sends one batch of statements for each recipe. The batch ends at its first conflict, so
 * the error names one user. Up to 11.4, the batch has only the first tenant of each method.
 * @throws {BlamedFault | DatabaseFault}
 */
function assertLoginsFree(
  { logins }: Tables,
  users: readonly ImportedUser[],
  { rules }: ImportSettings,
): void {
  for (const recipeId of RECIPES_IN_ORDER) {
    const methods = users.flatMap((user) =>
      user.loginMethods.filter((method) => method.recipeId === recipeId),
    )
    const wanted = methods.flatMap((method, position) => {
      const { tenantIds } = method
      const tenants = rules.reservesPrimaryInfos ? tenantIds : tenantIds.slice(0, 1)
      return wantedIn(method, tenants).map((held) => ({ ...held, position }))
    })
    const [conflict] = conflictsIn(wanted, (key) => logins.has(key))
    if (conflict !== undefined) throw faultOf(conflict, { users, methods, rules })
  }
}

function wantedIn(method: LoginMethod, tenantIds: readonly string[]) {
  return heldBy(method, loginsOf, tenantIds).map((held) => ({
    ...held,
    holder: method.superTokensUserId,
    method,
    isPhone: held.value.startsWith('passwordless phone '),
  }))
}

/**
 * Postgres stores no NUL in a text; in metadata it is an escape of JSON.
 * @throws {DatabaseFault}
 */
function assertStorable(users: readonly ImportedUser[]): void {
  const texts = users.flatMap(({ externalUserId, loginMethods, totpDevices = [] }) =>
    [{ externalUserId }, ...loginMethods, ...totpDevices].flatMap((part) => Object.values(part)),
  )
  if (texts.some((text) => typeof text === 'string' && text.includes('\0'))) {
    throw new DatabaseFault('invalid byte sequence for encoding "UTF8": 0x00')
  }
}

interface OfRecipe {
  readonly users: readonly ImportedUser[]
  readonly methods: readonly LoginMethod[]
  readonly rules: ImportRules
}

function faultOf(conflict: WantedLogin, { users, methods, rules }: OfRecipe): Error {
  const { method, position, isPhone } = conflict
  if (!rules.namedRecipes.includes(method.recipeId)) {
    const isTranslated = rules.unnamedText === 'translated'
    return new DatabaseFault(isTranslated ? 'translated' : takenLoginText(conflict))
  }
  // In a later batch the core names the wrong user, because it counts from the beginning of the list.
  const blamed = methods[position % STATEMENTS_OF_BATCH] ?? method
  const user = users.find(({ loginMethods }) => loginMethods.includes(blamed))
  return new BlamedFault(new Map([[user?.id ?? '', loginText(blamed, isPhone)]]))
}

/**
 * Up to 11.4, the core adds methods to their other tenants one by one, after all are inserted.
 * @throws {BlamedFault} E014, E015 or E016 for each conflict
 */
function assertOtherTenantsFree({ logins }: Tables, users: readonly ImportedUser[]): void {
  const inTenants = (tenantsOf: (ids: readonly string[]) => readonly string[]) =>
    users.flatMap(({ id, loginMethods }) =>
      loginMethods.flatMap((method) =>
        wantedIn(method, tenantsOf(method.tenantIds)).map((held) => ({ ...held, id })),
      ),
    )
  const inFirst = inTenants((ids) => ids.slice(0, 1))
  const inOthers = inTenants((ids) => [...new Set(ids.slice(1))])
  const conflicts = conflictsIn([...inFirst, ...inOthers], (key) => logins.has(key))
  if (conflicts.length === 0) return
  throw new BlamedFault(new Map(conflicts.map((conflict) => [conflict.id, tenantText(conflict)])))
}

/** @throws {BlamedFault | DatabaseFault} for the first external id that is taken */
function assertExternalIdsFree(
  { accountOf, coreIds }: Tables,
  users: readonly ImportedUser[],
  { namesExternalIds }: ImportRules,
): void {
  const mapped = users.filter(({ externalUserId }) => externalUserId !== undefined)
  const own = users.flatMap(({ loginMethods }) => loginMethods)
  const newCoreIds = new Set(own.map(({ superTokensUserId }) => superTokensUserId))
  const seen = new Set<string>()
  for (const [position, { id, externalUserId = '' }] of mapped.entries()) {
    if (accountOf.has(externalUserId) || newCoreIds.has(externalUserId)) {
      throw new BlamedFault(new Map([[id, IS_CORE_ID]]))
    }
    // Two ids in a chunk may have differed only by white space, which has been trimmed by now.
    const isTaken = coreIds.has(externalUserId) || seen.has(externalUserId)
    seen.add(externalUserId)
    if (!isTaken) continue
    if (!namesExternalIds) throw new DatabaseFault(takenIdText(id, externalUserId, position))
    const text = `E031: A user with externalId ${externalUserId} already exists`
    throw new BlamedFault(new Map([[id, text]]))
  }
}

const IS_CORE_ID =
  'E030: io.supertokens.pluginInterface.bulkimport.exceptions.BulkImportBatchInsertException: useridmapping errors'

/** @throws {ChunkFault} E036 or E037 */
function assertDevices(users: readonly ImportedUser[], { features, nowMs }: ImportSettings): void {
  const owned = users.flatMap((user) =>
    (user.totpDevices ?? []).map((device) => ({ userId: ownId(user), device })),
  )
  if (owned.length > 0 && !features.has('mfa')) throw new ChunkFault(NO_MFA)
  for (const [position, one] of owned.entries()) {
    const fault = deviceFault({ ...one, position }, nowMs)
    if (fault !== undefined) throw fault
  }
}

const NO_MFA = 'E037: MFA feature is not enabled. Please contact support to enable it.'

/** @throws {BlamedFault | ChunkFault} for the first role that does not exist, or that a user has twice in a tenant */
function assertRoles({ roles }: Tables, users: readonly ImportedUser[]): void {
  const given = users.flatMap((user) =>
    (user.userRoles ?? []).flatMap(({ role, tenantIds }) =>
      tenantIds.map((tenantId) => ({ id: user.id, userId: ownId(user), tenantId, role })),
    ),
  )
  const unknown = given.find(({ role }) => !roles.has(role))
  if (unknown !== undefined) throw new BlamedFault(new Map([[unknown.id, NO_ROLE]]))
  const seen = new Set<string>()
  for (const [position, one] of given.entries()) {
    const { userId, tenantId, role }: GivenRole = one
    const key = JSON.stringify([tenantId, userId, role])
    if (seen.has(key)) throw roleTwice(one, position)
    seen.add(key)
  }
}

const NO_ROLE =
  'E034: Role does not exist! You need to pre-create the role before assigning it to the user.'

/** The methods of a linked user become one account; otherwise each becomes an account of its own. */
function accountsOf(user: ImportedUser, isPrimary: boolean): Account[] {
  const toAccount = (id: string, methods: readonly LoginMethod[]): Account => {
    const timeJoined = Math.min(...methods.map((method) => method.timeJoinedInMSSinceEpoch))
    return { id, isPrimary, timeJoined, methods: methods.map(toStored) }
  }
  if (isPrimary) return [toAccount(user.id, user.loginMethods)]
  return user.loginMethods.map((method) => toAccount(method.superTokensUserId, [method]))
}

function toStored(method: LoginMethod): LoginMethod {
  // Verification concerns the address, so a login without one needs none.
  const isVerified = method.isVerified || method.email === undefined
  return { ...method, isVerified, tenantIds: [...new Set(method.tenantIds)] }
}

function withHashes(user: ImportedUser): ImportedUser {
  const loginMethods = user.loginMethods.map(({ plainTextPassword, ...method }) => {
    if (plainTextPassword === undefined || method.passwordHash !== undefined) return method
    return { ...method, passwordHash: PLAIN + plainTextPassword }
  })
  return { ...user, loginMethods }
}

function dataOf(user: ImportedUser): UserData {
  const roles: UserRole[] | undefined = user.userRoles?.filter(({ tenantIds }) => tenantIds.length)
  // If two devices have the same name, the core stores the later one.
  const devices = user.totpDevices && [
    ...new Map(user.totpDevices.map((device) => [device.deviceName, device])).values(),
  ]
  return {
    userId: ownId(user),
    ...(user.userMetadata && { metadata: user.userMetadata }),
    ...(roles && { roles }),
    ...(devices && { devices }),
  }
}
