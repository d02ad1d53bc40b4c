import type { Query } from './database.js'
import {
  batchText,
  duplicateKey,
  isStorable,
  nulText,
  STATEMENTS_OF_BATCH,
  STORAGE_EXCEPTION,
  valuesText,
} from './database-text.js'
import { findConflicts, heldBy, loginsOf, primaryInfosOf, type Wanted } from './held-infos.js'
import { BlamedFault, DatabaseFault } from './import-fault.js'
import type { ImportRules } from './import-rules.js'
import type { ImportedUser, ImportSettings, LoginMethod } from './imported-user.js'

/** @throws {BlamedFault} E022 */
export async function assertPrimaryInfosFree(
  query: Query,
  users: readonly ImportedUser[],
  { reservesPrimaryInfos }: ImportRules,
): Promise<void> {
  const wanted = users.flatMap((user) =>
    user.loginMethods.flatMap((method) =>
      heldBy(method, primaryInfosOf).map((held) => {
        // Up to 11.4, the core does not compare the users of a chunk with each other: all become primary.
        return { ...held, id: user.id, holder: reservesPrimaryInfos ? user.id : '' }
      }),
    ),
  )
  const conflicts = await findConflicts(query, wanted, 'select tenant_id, info from primary_infos')
  const blamed = reservesPrimaryInfos ? conflicts.slice(0, 1) : conflicts
  if (blamed.length === 0) return
  throw new BlamedFault(
    new Map(
      blamed.map(({ id }) => {
        const attempt = `We tried to create the primary user for the userId ${id}`
        const text = 'but the account info is already associated with another primary user.'
        return [id, `E022: ${attempt} ${text}`]
      }),
    ),
  )
}

const RECIPES_IN_ORDER = ['emailpassword', 'thirdparty', 'passwordless']

interface WantedLogin extends Wanted {
  readonly method: LoginMethod
  /** The position of the method among those of its recipe in the chunk. */
  readonly position: number
}

const HELD_LOGINS = 'select tenant_id, login from logins'

/**
 * The core sends one batch of statements for each recipe. The batch ends at its first conflict, so
 * the error names one user. Up to 11.4, the batch has only the first tenant of each method.
 * @throws {BlamedFault | DatabaseFault}
 */
export async function assertLoginsFree(
  query: Query,
  users: readonly ImportedUser[],
  settings: ImportSettings,
): Promise<void> {
  for (const recipeId of RECIPES_IN_ORDER) {
    const methods = users.flatMap((user) =>
      user.loginMethods.filter((method) => method.recipeId === recipeId),
    )
    assertStorable(methods, settings)
    const wanted = methods.flatMap((method, position) => wantedBy(method, position, settings.rules))
    const [conflict] = await findConflicts(query, wanted, HELD_LOGINS)
    if (conflict !== undefined) throw faultOf(conflict, { users, methods, rules: settings.rules })
  }
}

function wantedBy(method: LoginMethod, position: number, rules: ImportRules): WantedLogin[] {
  const { superTokensUserId: holder, tenantIds } = method
  const tenants = rules.reservesPrimaryInfos ? tenantIds : tenantIds.slice(0, 1)
  return heldBy(method, loginsOf, tenants).map((held) => ({ ...held, holder, method, position }))
}

interface OfRecipe {
  readonly users: readonly ImportedUser[]
  readonly methods: readonly LoginMethod[]
  readonly rules: ImportRules
}

function faultOf(conflict: WantedLogin, { users, methods, rules }: OfRecipe): Error {
  const { method, position, value } = conflict
  const entry = position % STATEMENTS_OF_BATCH
  if (!rules.namedRecipes.includes(method.recipeId)) {
    return new DatabaseFault(
      rules.unnamedText === 'translated'
        ? 'translated'
        : `${STORAGE_EXCEPTION}: ${batchText({ entry, ...takenLogin(conflict) })}`,
    )
  }
  // In a later batch the core names the wrong user, because it counts from the beginning of the list.
  const blamed = methods[entry] ?? method
  const user = users.find(({ loginMethods }) => loginMethods.includes(blamed))
  const isOfPhone = value.startsWith('passwordless phone ')
  return new BlamedFault(new Map([[user?.id ?? '', loginText(blamed, isOfPhone)]]))
}

function loginText(method: LoginMethod, isOfPhone: boolean): string {
  const { recipeId, email, phoneNumber, thirdPartyId, thirdPartyUserId } = method
  if (recipeId === 'emailpassword') {
    return `E003: A user with email ${email} already exists in emailpassword loginMethod.`
  }
  if (recipeId === 'thirdparty') {
    const pair = `thirdPartyId ${thirdPartyId} and thirdPartyUserId ${thirdPartyUserId}`
    return `E005: A user with ${pair} already exists in thirdparty loginMethod.`
  }
  // The core also prints null if it blames a user for another user's login.
  return isOfPhone
    ? `E007: A user with phoneNumber ${phoneNumber ?? null} already exists in passwordless loginMethod.`
    : `E006: A user with email ${email ?? null} already exists in passwordless loginMethod.`
}

function takenLogin({ method, value, tenant_id: tenantId }: WantedLogin) {
  const { recipeId, superTokensUserId: id, email, phoneNumber } = method
  const { thirdPartyId, thirdPartyUserId } = method
  const table = `${recipeId}_user_to_tenant`
  if (recipeId === 'thirdparty') {
    const columns = 'third_party_id, third_party_user_id'
    const values = valuesText(['public', tenantId, id, thirdPartyId, thirdPartyUserId])
    return {
      statement: `INSERT INTO ${table}(app_id, tenant_id, user_id, ${columns}) VALUES(${values})`,
      error: duplicateKey(
        `${table}_third_party_user_id_key`,
        `app_id, tenant_id, ${columns}`,
        `public, ${tenantId}, ${thirdPartyId}, ${thirdPartyUserId}`,
      ),
    }
  }
  const column = value.startsWith('passwordless phone ') ? 'phone_number' : 'email'
  const values = valuesText(['public', tenantId, id, email, phoneNumber])
  return {
    statement: `INSERT INTO ${table}(app_id, tenant_id, user_id, email, phone_number) VALUES(${values})`,
    error: duplicateKey(
      `${table}_${column}_key`,
      `app_id, tenant_id, ${column}`,
      `public, ${tenantId}, ${column === 'email' ? email : phoneNumber}`,
    ),
  }
}

/** The statement that inserts the method, and its text parameters. */
function insertion(method: LoginMethod): { into: string; texts: (string | undefined)[] } {
  const { recipeId, superTokensUserId: id, email, phoneNumber, passwordHash } = method
  if (recipeId === 'thirdparty') {
    return {
      into: 'thirdparty_users(app_id, third_party_id, third_party_user_id, user_id, email, time_joined)',
      texts: ['public', method.thirdPartyId, method.thirdPartyUserId, id, email],
    }
  }
  if (recipeId === 'passwordless') {
    return {
      into: 'passwordless_users(app_id, user_id, email, phone_number, time_joined)',
      texts: ['public', id, email, phoneNumber],
    }
  }
  return {
    into: 'emailpassword_users(app_id, user_id, email, password_hash, time_joined)',
    texts: ['public', id, email, passwordHash],
  }
}

/** @throws {DatabaseFault} for the first method with a NUL in a text */
function assertStorable(methods: readonly LoginMethod[], { rules }: ImportSettings): void {
  for (const [position, method] of methods.entries()) {
    const { into, texts } = insertion(method)
    const parameter = 1 + texts.findIndex((text) => !isStorable(text))
    if (parameter === 0) continue
    const isTranslated = rules.unnamedText === 'translated' || method.recipeId === 'emailpassword'
    if (isTranslated) throw new DatabaseFault('translated')
    const joined = `('${method.timeJoinedInMSSinceEpoch}'::int8)`
    const statement = `INSERT INTO ${into} VALUES(${valuesText(texts)}, ${joined})`
    const entry = position % STATEMENTS_OF_BATCH
    const text = batchText({ entry, statement, error: nulText(parameter) })
    throw new DatabaseFault(`${STORAGE_EXCEPTION}: ${text}`)
  }
}

/**
 * Up to 11.4, the core adds methods to their other tenants one by one, after all are inserted.
 * @throws {BlamedFault} E014, E015 or E016 for each conflict
 */
export async function assertOtherTenantsFree(
  query: Query,
  users: readonly ImportedUser[],
): Promise<void> {
  const all = users.flatMap((user) => user.loginMethods.map((method) => ({ id: user.id, method })))
  const wantedIn = (first: boolean) =>
    all.flatMap(({ id, method }) => {
      const { superTokensUserId: holder, tenantIds } = method
      const tenants = first ? tenantIds.slice(0, 1) : [...new Set(tenantIds.slice(1))]
      return heldBy(method, loginsOf, tenants).map((held) => ({ ...held, holder, id, method }))
    })
  const conflicts = await findConflicts(query, [...wantedIn(true), ...wantedIn(false)], HELD_LOGINS)
  if (conflicts.length === 0) return
  throw new BlamedFault(new Map(conflicts.map((conflict) => [conflict.id, tenantText(conflict)])))
}

function tenantText({ method, value, tenant_id: tenantId }: Omit<WantedLogin, 'position'>): string {
  const { superTokensUserId, email, phoneNumber, thirdPartyId, thirdPartyUserId } = method
  const attempt = `We tried to add the userId ${superTokensUserId} to the tenantId ${tenantId}`
  const other = (what: string) => `${attempt} but another user with ${what} already exists.`
  if (value.startsWith('passwordless phone ')) return `E015: ${other(`phoneNumber ${phoneNumber}`)}`
  if (method.recipeId !== 'thirdparty') return `E014: ${other(`email ${email}`)}`
  return `E016: ${other(`thirdPartyId ${thirdPartyId} and thirdPartyUserId ${thirdPartyUserId}`)}`
}
