import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LoginMethod, TotpDevice, UserRole } from './imported-user.js'
import type { JsonObject } from './input.js'

export type RowStatus = 'NEW' | 'PROCESSING' | 'FAILED'

/** A user who waits for the import, with every secret in clear text, as in the core. */
export interface Row {
  readonly id: string
  readonly user: JsonObject
  readonly status: RowStatus
  readonly errorMessage?: string | undefined
  readonly createdAt: number
  readonly updatedAt: number
}

/** What the core calls a user: one login method, or several that are linked. */
export interface Account {
  readonly id: string
  readonly isPrimary: boolean
  readonly timeJoined: number
  /** Without plain passwords. */
  readonly methods: readonly LoginMethod[]
}

/** What the core keeps under a user's own id. */
export interface UserData {
  readonly userId: string
  readonly metadata?: JsonObject | undefined
  readonly roles?: readonly UserRole[] | undefined
  readonly devices?: readonly TotpDevice[] | undefined
}

/** What changes in one step, and is written as one line. */
export interface Change {
  readonly tenant?: string
  readonly tenantGone?: string
  readonly role?: string
  readonly roleGone?: string
  /** New ones, or others in the place of those with the same id. */
  readonly rows?: readonly Row[]
  readonly rowsGone?: readonly string[]
  /** New ones, or others in the place of those with the same id. */
  readonly accounts?: readonly Account[]
  readonly accountsGone?: readonly string[]
  /** Pairs of the core's id of a login method and an external id. */
  readonly mappings?: readonly (readonly [coreId: string, externalId: string])[]
  readonly mappingsGone?: readonly string[]
  readonly data?: readonly UserData[]
  readonly dataGone?: readonly string[]
}

/** All that the core keeps. */
export interface Tables {
  readonly tenants: ReadonlySet<string>
  readonly roles: ReadonlySet<string>
  /** In the order in which they were staged. */
  readonly rows: ReadonlyMap<string, Row>
  readonly accounts: ReadonlyMap<string, Account>
  /** By the core's ids of their login methods. */
  readonly accountOf: ReadonlyMap<string, string>
  /** What one method may sign in with in a tenant, and nobody else by the same recipe: its id by `keyOf`. */
  readonly logins: ReadonlyMap<string, string>
  /** The accounts with an address, a number or a provider's user in a tenant, by `keyOf`. */
  readonly holders: ReadonlyMap<string, ReadonlySet<string>>
  readonly coreIds: ReadonlyMap<string, string>
  readonly externalIds: ReadonlyMap<string, string>
  readonly data: ReadonlyMap<string, UserData>
  /** Makes the change at once, all of it. @throws Error if it breaks a unique index: whoever imports looks first */
  change(change: Change): void
}

const FILE = 'changes.ndjson'
/** Only the owner may read it: rows hold the staged data in clear text, including passwords. */
const FILE_MODE = 0o600

/**
 * Opens the tables. With a folder, each change is a line of a file there before it is acknowledged, so that a killed
 * process loses nothing; one process at a time may open it.
 */
export function openTables(folder?: string): Tables {
  const tables = emptyTables()
  if (folder === undefined) return { ...tables, change: (change) => apply(change, tables) }
  mkdirSync(folder, { recursive: true })
  const file = join(folder, FILE)
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  // A process that was killed while it wrote has left the beginning of a line, which it has not acknowledged.
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  if (whole !== text) writeFileSync(file, whole, { mode: FILE_MODE })
  for (const line of whole.split('\n').slice(0, -1)) apply(JSON.parse(line), tables)
  return {
    ...tables,
    change(change) {
      apply(change, tables)
      appendFileSync(file, `${JSON.stringify(change)}\n`, { mode: FILE_MODE })
    },
  }
}

const emptyTables = () => ({
  tenants: new Set(['public']),
  roles: new Set<string>(),
  rows: new Map<string, Row>(),
  accounts: new Map<string, Account>(),
  accountOf: new Map<string, string>(),
  logins: new Map<string, string>(),
  holders: new Map<string, Set<string>>(),
  coreIds: new Map<string, string>(),
  externalIds: new Map<string, string>(),
  data: new Map<string, UserData>(),
})

type Maps = ReturnType<typeof emptyTables>

function apply(change: Change, tables: Maps): void {
  if (change.tenant !== undefined) tables.tenants.add(change.tenant)
  if (change.tenantGone !== undefined) tables.tenants.delete(change.tenantGone)
  if (change.role !== undefined) tables.roles.add(change.role)
  if (change.roleGone !== undefined) tables.roles.delete(change.roleGone)
  for (const row of change.rows ?? []) tables.rows.set(row.id, row)
  for (const id of change.rowsGone ?? []) tables.rows.delete(id)
  for (const id of change.accountsGone ?? []) removeAccount(id, tables)
  for (const account of change.accounts ?? []) putAccount(account, tables)
  for (const [coreId, externalId] of change.mappings ?? []) {
    addUnique(tables.coreIds, externalId, coreId)
    tables.externalIds.set(coreId, externalId)
  }
  for (const coreId of change.mappingsGone ?? []) {
    tables.coreIds.delete(tables.externalIds.get(coreId) ?? '')
    tables.externalIds.delete(coreId)
  }
  for (const data of change.data ?? []) {
    tables.data.set(data.userId, { ...tables.data.get(data.userId), ...data })
  }
  for (const userId of change.dataGone ?? []) tables.data.delete(userId)
}

function putAccount(account: Account, tables: Maps): void {
  removeAccount(account.id, tables)
  tables.accounts.set(account.id, account)
  for (const method of account.methods) {
    const { superTokensUserId: id } = method
    addUnique(tables.accountOf, id, account.id)
    for (const key of heldBy(method, loginsOf).map(keyOf)) addUnique(tables.logins, key, id)
    for (const key of heldBy(method, infosOf).map(keyOf)) {
      tables.holders.set(key, (tables.holders.get(key) ?? new Set()).add(account.id))
    }
  }
}

function removeAccount(id: string, tables: Maps): void {
  for (const method of tables.accounts.get(id)?.methods ?? []) {
    tables.accountOf.delete(method.superTokensUserId)
    for (const key of heldBy(method, loginsOf).map(keyOf)) tables.logins.delete(key)
    for (const key of heldBy(method, infosOf).map(keyOf)) tables.holders.get(key)?.delete(id)
  }
  tables.accounts.delete(id)
}

function addUnique(index: Map<string, string>, key: string, value: string): void {
  if ((index.get(key) ?? value) !== value) throw new Error(`a unique index has ${key} already`)
  index.set(key, value)
}

/** A value that only one login method, or one primary account, may have in a tenant. */
export interface Held {
  readonly tenantId: string
  readonly value: string
}

export const keyOf = ({ tenantId, value }: Held): string => `${tenantId} ${value}`

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

/** Returns the values by which accounts are looked up, and that no two primary ones may share. */
export function infosOf(method: Partial<LoginMethod>): readonly string[] {
  const { email, phoneNumber, thirdPartyId } = method
  return [
    ...(email === undefined ? [] : [`email ${email}`]),
    ...(phoneNumber === undefined ? [] : [`phone ${phoneNumber}`]),
    ...(thirdPartyId === undefined ? [] : [`thirdparty ${providerPair(method)}`]),
  ]
}

function providerPair({ thirdPartyId, thirdPartyUserId }: Partial<LoginMethod>): string {
  return JSON.stringify([thirdPartyId, thirdPartyUserId])
}

/** Returns the values of a method in these of its tenants, by default in all. */
export function heldBy(
  method: LoginMethod,
  valuesOf: (method: LoginMethod) => readonly string[],
  tenantIds: readonly string[] = method.tenantIds,
): Held[] {
  const values = valuesOf(method)
  return tenantIds.flatMap((tenantId) => values.map((value) => ({ tenantId, value })))
}
