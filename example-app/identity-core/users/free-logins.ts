import type { Query } from './database.js'
import { BlamedFault } from './import-fault.js'
import type { ImportedUser, LoginMethod } from './imported-user.js'

/** Something that one login method, or one primary account, may hold in a tenant. */
export interface Held {
  readonly tenant_id: string
  readonly value: string
}

/**
 * What a method signs in with: nobody else may by the same recipe.
 * The order is that in which the core finds conflicts.
 */
export function loginsOf(method: LoginMethod): readonly string[] {
  const { recipeId, email, phoneNumber } = method
  if (recipeId === 'emailpassword') return [`emailpassword ${email}`]
  if (recipeId === 'thirdparty') return [`thirdparty ${providerPair(method)}`]
  return [
    ...(email === undefined ? [] : [`passwordless ${email}`]),
    ...(phoneNumber === undefined ? [] : [`passwordless ${phoneNumber}`]),
  ]
}

/** By what the core tells primary accounts apart, whatever the recipe. */
export function primaryInfosOf(method: LoginMethod): readonly string[] {
  const { email, phoneNumber, recipeId } = method
  return [
    ...(email === undefined ? [] : [`email ${email}`]),
    ...(phoneNumber === undefined ? [] : [`phone ${phoneNumber}`]),
    ...(recipeId === 'thirdparty' ? [`thirdparty ${providerPair(method)}`] : []),
  ]
}

function providerPair({ thirdPartyId, thirdPartyUserId }: LoginMethod): string {
  return JSON.stringify([thirdPartyId, thirdPartyUserId])
}

/** What the method holds in each of its tenants. */
export function heldBy(
  method: LoginMethod,
  valuesOf: (method: LoginMethod) => readonly string[],
): Held[] {
  const values = valuesOf(method)
  return method.tenantIds.flatMap((tenant_id) => values.map((value) => ({ tenant_id, value })))
}

/** @throws {BlamedFault} E022 */
export async function assertPrimaryInfosFree(
  query: Query,
  users: readonly ImportedUser[],
): Promise<void> {
  const wanted = users.flatMap((user) =>
    user.loginMethods.flatMap((method) =>
      heldBy(method, primaryInfosOf).map((held) => ({ ...held, user, holder: user.id })),
    ),
  )
  const taken = await alreadyHeld(query, wanted, 'select tenant_id, info from primary_infos')
  const conflict = firstConflict(wanted, taken)
  if (conflict === undefined) return
  const { id } = conflict.user
  const attempt = `We tried to create the primary user for the userId ${id}`
  const text = `E022: ${attempt} but the account info is already associated with another primary user.`
  throw new BlamedFault(new Map([[id, text]]))
}

const RECIPES_IN_ORDER = ['emailpassword', 'thirdparty', 'passwordless']

/** @throws {BlamedFault} E003, E005, E006 or E007 */
export async function assertLoginsFree(
  query: Query,
  users: readonly ImportedUser[],
): Promise<void> {
  const wanted = RECIPES_IN_ORDER.flatMap((recipeId) =>
    users.flatMap((user) =>
      user.loginMethods
        .filter((method) => method.recipeId === recipeId)
        .flatMap((method) =>
          heldBy(method, loginsOf).map((held) => {
            return { ...held, user, method, holder: method.superTokensUserId }
          }),
        ),
    ),
  )
  const taken = await alreadyHeld(query, wanted, 'select tenant_id, login from logins')
  const conflict = firstConflict(wanted, taken)
  if (conflict === undefined) return
  throw new BlamedFault(new Map([[conflict.user.id, loginText(conflict.method, conflict.value)]]))
}

function loginText(method: LoginMethod, login: string): string {
  const { recipeId, email, phoneNumber, thirdPartyId, thirdPartyUserId } = method
  if (recipeId === 'emailpassword') {
    return `E003: A user with email ${email} already exists in emailpassword loginMethod.`
  }
  if (recipeId === 'thirdparty') {
    const pair = `thirdPartyId ${thirdPartyId} and thirdPartyUserId ${thirdPartyUserId}`
    return `E005: A user with ${pair} already exists in thirdparty loginMethod.`
  }
  return login === `passwordless ${email}`
    ? `E006: A user with email ${email} already exists in passwordless loginMethod.`
    : `E007: A user with phoneNumber ${phoneNumber} already exists in passwordless loginMethod.`
}

interface Wanted extends Held {
  readonly user: ImportedUser
  /** Who may name a thing twice: two methods of a primary account share their e-mail address. */
  readonly holder: string
}

async function alreadyHeld(
  query: Query,
  wanted: readonly Held[],
  select: string,
): Promise<Set<string>> {
  if (wanted.length === 0) return new Set()
  const keys = wanted.map(({ tenant_id, value }) => ({ tenant_id, value }))
  const held = await query<Held>(
    `select * from (${select}) as held (tenant_id, value) where (tenant_id, value) in
       (select tenant_id, value from json_to_recordset($1::json) as w (tenant_id text, value text))`,
    [JSON.stringify(keys)],
  )
  return new Set(held.map(keyOf))
}

/** One alone: a batch that fails names the first that fails it. */
function firstConflict<Want extends Wanted>(
  wanted: readonly Want[],
  taken: ReadonlySet<string>,
): Want | undefined {
  const holders = new Map<string, string>()
  return wanted.find((want) => {
    const key = keyOf(want)
    const holder = holders.get(key)
    holders.set(key, holder ?? want.holder)
    return taken.has(key) || (holder !== undefined && holder !== want.holder)
  })
}

function keyOf({ tenant_id, value }: Held): string {
  return `${tenant_id} ${value}`
}
