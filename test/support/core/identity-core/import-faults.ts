import type { ImportedUser, LoginMethod, TotpDevice } from './imported-user.js'

/** The core blames these users of a chunk. `texts` has the core's text by the id of the row. */
export class BlamedFault extends Error {
  override readonly name = 'BlamedFault'
  readonly texts: ReadonlyMap<string, string>

  constructor(texts: ReadonlyMap<string, string>) {
    super([...texts.values()].join('; '))
    this.texts = texts
  }
}

/** The core blames no user and fails the whole chunk with this text. */
export class ChunkFault extends Error {
  override readonly name = 'ChunkFault'
  /** The Java class that direct import names before the text. */
  readonly javaClass: string

  constructor(text: string, javaClass = 'java.lang.Exception') {
    super(text)
    this.javaClass = javaClass
  }
}

/**
 * An error that the core takes for a fault of its database. The core changes no row of the chunk,
 * and tries the chunk again in each run. Direct import answers with the text.
 */
export class DatabaseFault extends Error {
  override readonly name = 'DatabaseFault'
}

/** The class that the core names before an error of its database. */
const STORAGE_EXCEPTION = 'io.supertokens.pluginInterface.exceptions.StorageQueryException'

/** The number of statements that the core sends in one batch. */
export const STATEMENTS_OF_BATCH = 100

/** The columns of a row, by name. */
type Columns = Readonly<Record<string, string | undefined>>

/** A statement that inserts into a table. */
interface Insertion {
  readonly into: string
  readonly row: Columns
}

/** The core returns the driver's message, with the statement, its values and its place among those of its kind. */
function batchText({ into, row }: Insertion, position: number, error: string): string {
  const statement = `INSERT INTO ${into} VALUES(${valuesText(Object.values(row))})`
  return abortedText(statement, position, error)
}

function abortedText(statement: string, position: number, error: string): string {
  const entry = position % STATEMENTS_OF_BATCH
  const end = 'Call getNextException to see other errors in the batch.'
  return `java.sql.BatchUpdateException: Batch entry ${entry} ${statement} was aborted: ERROR: ${error}  ${end}`
}

const storageText = (insertion: Insertion, position: number, error: string): string =>
  `${STORAGE_EXCEPTION}: ${batchText(insertion, position, error)}`

/** The values of a statement as the driver prints them. */
const valuesText = (values: readonly (string | undefined)[]): string =>
  values.map((value) => (value === undefined ? '(NULL)' : `('${value}')`)).join(', ')

const namesOf = (row: Columns): string => Object.keys(row).join(', ')

function duplicateKey(constraint: string, key: Columns): string {
  const detail = `Detail: Key (${namesOf(key)})=(${Object.values(key).join(', ')}) already exists.`
  return `duplicate key value violates unique constraint "${constraint}"\n  ${detail}`
}

/** A login of a method that another method has in a tenant. */
export interface TakenLogin {
  readonly method: LoginMethod
  readonly isPhone: boolean
  readonly tenantId: string
  readonly position: number
}

export function takenLoginText({ method, isPhone, tenantId, position }: TakenLogin): string {
  const { recipeId, superTokensUserId: user_id, email, phoneNumber: phone_number } = method
  const { thirdPartyId: third_party_id, thirdPartyUserId: third_party_user_id } = method
  const table = `${recipeId}_user_to_tenant`
  const isProvider = recipeId === 'thirdparty'
  const login = isProvider ? { third_party_id, third_party_user_id } : { email, phone_number }
  const taken = isPhone ? { phone_number } : { email }
  const name = isProvider ? 'third_party_user_id' : namesOf(taken)
  const place = { app_id: 'public', tenant_id: tenantId }
  const row = { ...place, user_id, ...login }
  const key = { ...place, ...(isProvider ? login : taken) }
  const error = duplicateKey(`${table}_${name}_key`, key)
  return storageText({ into: `${table}(${namesOf(row)})`, row }, position, error)
}

export function takenIdText(coreId: string, externalId: string, position: number): string {
  const row = { app_id: 'public', supertokens_user_id: coreId, external_user_id: externalId }
  const key = { app_id: 'public', external_user_id: externalId }
  const error = duplicateKey('userid_mapping_external_user_id_key', key)
  return storageText({ into: `userid_mapping (${namesOf(row)})`, row }, position, error)
}

export interface GivenRole {
  readonly userId: string
  readonly tenantId: string
  readonly role: string
}

/** The fault of a role that a user has twice in a tenant. */
export function roleTwice({ tenantId, userId, role }: GivenRole, position: number): ChunkFault {
  const row = { app_id: 'public', tenant_id: tenantId, user_id: userId, role }
  const error = duplicateKey('user_roles_pkey', row)
  const text = storageText({ into: `user_roles(${namesOf(row)})`, row }, position, error)
  const javaClass = 'io.supertokens.pluginInterface.exceptions.StorageTransactionLogicException'
  return new ChunkFault(text, javaClass)
}

export interface OwnedDevice {
  readonly userId: string
  readonly device: TotpDevice
  readonly position: number
}

/** The fault of a device that the database rejects; its text quotes the secret key. */
export function deviceFault(owned: OwnedDevice, nowMs: number): ChunkFault | undefined {
  const { userId, position, device } = owned
  const error = deviceError(owned, nowMs)
  if (error === undefined) return undefined
  const { secretKey, period, skew, deviceName } = device
  const columns = 'app_id, user_id, device_name, secret_key, period, skew, verified, created_at'
  const texts = valuesText(['public', userId, deviceName, secretKey])
  const numbers = `('${period}'::int4), ('${skew}'::int4), ('TRUE'), ('${nowMs}'::int8)`
  const key = valuesText([secretKey])
  const changes = `secret_key = ${key}, period = ('${period}'::int4), skew = ('${skew}'::int4), created_at = ('${nowMs}'::int8), verified = ('TRUE')`
  const conflict = `ON CONFLICT (app_id, user_id, device_name) DO UPDATE SET ${changes}`
  const statement = `INSERT INTO totp_user_devices (${columns}) VALUES (${texts}, ${numbers}) ${conflict}`
  return new ChunkFault(`E036: ${abortedText(statement, position, error)}`)
}

function deviceError({ userId, device }: OwnedDevice, nowMs: number): string | undefined {
  const { secretKey, period, skew, deviceName } = device
  if (deviceName !== undefined) return undefined
  const constraint = 'null value in column "device_name" of relation "totp_user_devices"'
  const row = `public, ${userId}, null, ${secretKey}, ${period}, ${skew}, t, ${nowMs}`
  const detail = `Detail: Failing row contains (${row}).`
  return `${constraint} violates not-null constraint\n  ${detail}`
}

/** What a method signs in with. The core also prints null, if it blames a user for another user's login. */
function loginOf({ recipeId, ...method }: LoginMethod, isPhone: boolean): string {
  const { email = null, phoneNumber = null, thirdPartyId, thirdPartyUserId } = method
  if (isPhone) return `phoneNumber ${phoneNumber}`
  if (recipeId !== 'thirdparty') return `email ${email}`
  return `thirdPartyId ${thirdPartyId} and thirdPartyUserId ${thirdPartyUserId}`
}

/** One of three codes: for an address, a number, a provider's user. */
function codeOf({ recipeId }: LoginMethod, isPhone: boolean, codes: readonly string[]): string {
  const [address, number, provider] = codes
  if (isPhone) return String(number)
  return String(recipeId === 'thirdparty' ? provider : address)
}

/** The core's text for a login that another user has. */
export function loginText(method: LoginMethod, isPhone: boolean): string {
  const { recipeId } = method
  const address = recipeId === 'emailpassword' ? 'E003' : 'E006'
  const code = codeOf(method, isPhone, [address, 'E007', 'E005'])
  return `${code}: A user with ${loginOf(method, isPhone)} already exists in ${recipeId} loginMethod.`
}

/** The text up to 11.4 for a login that another user has in a tenant after the first. */
export function tenantText({ method, isPhone, tenantId }: Omit<TakenLogin, 'position'>): string {
  const attempt = `We tried to add the userId ${method.superTokensUserId} to the tenantId ${tenantId}`
  const code = codeOf(method, isPhone, ['E014', 'E015', 'E016'])
  return `${code}: ${attempt} but another user with ${loginOf(method, isPhone)} already exists.`
}

/** The core's text for a user who cannot become primary. */
export function primaryText({ id }: ImportedUser): string {
  const attempt = `We tried to create the primary user for the userId ${id}`
  return `E022: ${attempt} but the account info is already associated with another primary user.`
}
