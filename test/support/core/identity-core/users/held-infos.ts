import type { Query } from './database.js'
import type { LoginMethod } from './imported-user.js'

/** A value that only one login method, or one primary account, may have in a tenant. */
export interface Held {
  readonly tenant_id: string
  readonly value: string
}

/**
 * Returns the values with which a user signs in by a method. They are unique for each recipe. The
 * order is the one in which the core finds conflicts.
 */
export function loginsOf(method: LoginMethod): readonly string[] {
  const { recipeId, email, phoneNumber } = method
  if (recipeId === 'emailpassword') return [`emailpassword ${email}`]
  if (recipeId === 'thirdparty') return [`thirdparty ${providerPair(method)}`]
  return [
    ...(email === undefined ? [] : [`passwordless email ${email}`]),
    ...(phoneNumber === undefined ? [] : [`passwordless phone ${phoneNumber}`]),
  ]
}

/** Returns the values that no two primary accounts may share, for any recipe. */
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

/** Returns the values of a method in these of its tenants, by default in all. */
export function heldBy(
  method: LoginMethod,
  valuesOf: (method: LoginMethod) => readonly string[],
  tenantIds: readonly string[] = method.tenantIds,
): Held[] {
  const values = valuesOf(method)
  return tenantIds.flatMap((tenant_id) => values.map((value) => ({ tenant_id, value })))
}

export interface Wanted extends Held {
  /**
   * One holder may want a value twice: two methods of a primary account can have the same e-mail
   * address.
   */
  readonly holder: string
}

/** Returns the values that are already in the database, or that an earlier holder wants. */
export async function findConflicts<Want extends Wanted>(
  query: Query,
  wanted: readonly Want[],
  select: string,
): Promise<Want[]> {
  const taken = await alreadyHeld(query, wanted, select)
  const holders = new Map<string, string>()
  return wanted.filter((want) => {
    const key = keyOf(want)
    const holder = holders.get(key)
    holders.set(key, holder ?? want.holder)
    return taken.has(key) || (holder !== undefined && holder !== want.holder)
  })
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

function keyOf({ tenant_id, value }: Held): string {
  return `${tenant_id} ${value}`
}
