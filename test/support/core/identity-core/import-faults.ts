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

/** Postgres stores no text with this character. */
const NUL = '\0'

export function isStorable(text: string | undefined): boolean {
  return text === undefined || !text.includes(NUL)
}

/** The error of a statement with a NUL in its parameter at this position, starting at 1. */
function nulText(parameter: number): string {
  return `invalid byte sequence for encoding "UTF8": 0x00\n  Where: unnamed portal parameter $${parameter}`
}

/** The core's text for a NUL in the second parameter of a statement that it sends alone. */
export const UNSTORABLE = `${STORAGE_EXCEPTION}: org.postgresql.util.PSQLException: ERROR: ${nulText(2)}`

interface BatchError {
  /** The place of the failed statement among those of its kind. */
  readonly position: number
  readonly statement: string
  readonly error: string
}

/** The core returns the driver's message, with the statement and its values. */
function batchText({ position, statement, error }: BatchError): string {
  const entry = position % STATEMENTS_OF_BATCH
  const end = 'Call getNextException to see other errors in the batch.'
  return `java.sql.BatchUpdateException: Batch entry ${entry} ${statement} was aborted: ERROR: ${error}  ${end}`
}

const storageText = (error: BatchError): string => `${STORAGE_EXCEPTION}: ${batchText(error)}`

/** The values of a statement as the driver prints them, which cuts off a text after a NUL. */
function valuesText(values: readonly (string | undefined)[]): string {
  return values
    .map((value) => (value === undefined ? '(NULL)' : `('${printed(value)}')`))
    .join(', ')
}

function printed(value: string): string {
  return isStorable(value) ? value : value.slice(0, value.indexOf(NUL) + 1)
}

/** `columns` and `values` are those of the key, separated by commas. */
function duplicateKey(constraint: string, columns: string, values: string): string {
  const detail = `Detail: Key (${columns})=(${values}) already exists.`
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
  const { recipeId, superTokensUserId: id, email, phoneNumber } = method
  const { thirdPartyId, thirdPartyUserId } = method
  const table = `${recipeId}_user_to_tenant`
  if (recipeId === 'thirdparty') {
    const columns = 'third_party_id, third_party_user_id'
    const values = valuesText(['public', tenantId, id, thirdPartyId, thirdPartyUserId])
    return storageText({
      position,
      statement: `INSERT INTO ${table}(app_id, tenant_id, user_id, ${columns}) VALUES(${values})`,
      error: duplicateKey(
        `${table}_third_party_user_id_key`,
        `app_id, tenant_id, ${columns}`,
        `public, ${tenantId}, ${thirdPartyId}, ${thirdPartyUserId}`,
      ),
    })
  }
  const column = isPhone ? 'phone_number' : 'email'
  const values = valuesText(['public', tenantId, id, email, phoneNumber])
  return storageText({
    position,
    statement: `INSERT INTO ${table}(app_id, tenant_id, user_id, email, phone_number) VALUES(${values})`,
    error: duplicateKey(
      `${table}_${column}_key`,
      `app_id, tenant_id, ${column}`,
      `public, ${tenantId}, ${isPhone ? phoneNumber : email}`,
    ),
  })
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

/** The core's text for a method with a NUL; `undefined` for one without. */
export function unstorableLoginText(method: LoginMethod, position: number): string | undefined {
  const { into, texts } = insertion(method)
  const parameter = 1 + texts.findIndex((text) => !isStorable(text))
  if (parameter === 0) return undefined
  const joined = `('${method.timeJoinedInMSSinceEpoch}'::int8)`
  const statement = `INSERT INTO ${into} VALUES(${valuesText(texts)}, ${joined})`
  return storageText({ position, statement, error: nulText(parameter) })
}

export function takenIdText(coreId: string, externalId: string, position: number): string {
  const columns = '(app_id, supertokens_user_id, external_user_id)'
  return storageText({
    position,
    statement: `INSERT INTO userid_mapping ${columns} VALUES(${valuesText(['public', coreId, externalId])})`,
    error: duplicateKey(
      'userid_mapping_external_user_id_key',
      'app_id, external_user_id',
      `public, ${externalId}`,
    ),
  })
}

export interface GivenRole {
  readonly userId: string
  readonly tenantId: string
  readonly role: string
}

/** The fault of a role that a user has twice in a tenant. */
export function roleTwice({ tenantId, userId, role }: GivenRole, position: number): ChunkFault {
  const columns = 'app_id, tenant_id, user_id, role'
  const values = ['public', tenantId, userId, role]
  const text = storageText({
    position,
    statement: `INSERT INTO user_roles(${columns}) VALUES(${valuesText(values)})`,
    error: duplicateKey('user_roles_pkey', columns, values.join(', ')),
  })
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
  return new ChunkFault(`E036: ${batchText({ position, statement, error })}`)
}

const NAME_PARAMETER = 3

function deviceError({ userId, device }: OwnedDevice, nowMs: number): string | undefined {
  const { secretKey, period, skew, deviceName } = device
  if (!isStorable(deviceName)) return nulText(NAME_PARAMETER)
  if (!isStorable(secretKey)) return nulText(NAME_PARAMETER + 1)
  if (deviceName !== undefined) return undefined
  const constraint = 'null value in column "device_name" of relation "totp_user_devices"'
  const row = `public, ${userId}, null, ${secretKey}, ${period}, ${skew}, t, ${nowMs}`
  const detail = `Detail: Failing row contains (${row}).`
  return `${constraint} violates not-null constraint\n  ${detail}`
}

/** The core's text for a login that another user has. */
export function loginText(method: LoginMethod, isPhone: boolean): string {
  const { recipeId, email, phoneNumber, thirdPartyId, thirdPartyUserId } = method
  if (recipeId === 'emailpassword') {
    return `E003: A user with email ${email} already exists in emailpassword loginMethod.`
  }
  if (recipeId === 'thirdparty') {
    const pair = `thirdPartyId ${thirdPartyId} and thirdPartyUserId ${thirdPartyUserId}`
    return `E005: A user with ${pair} already exists in thirdparty loginMethod.`
  }
  // The core also prints null if it blames a user for another user's login.
  return isPhone
    ? `E007: A user with phoneNumber ${phoneNumber ?? null} already exists in passwordless loginMethod.`
    : `E006: A user with email ${email ?? null} already exists in passwordless loginMethod.`
}

/** The text up to 11.4 for a login that another user has in a tenant after the first. */
export function tenantText({ method, isPhone, tenantId }: Omit<TakenLogin, 'position'>): string {
  const { superTokensUserId, email, phoneNumber, thirdPartyId, thirdPartyUserId } = method
  const attempt = `We tried to add the userId ${superTokensUserId} to the tenantId ${tenantId}`
  const other = (what: string) => `${attempt} but another user with ${what} already exists.`
  if (isPhone) return `E015: ${other(`phoneNumber ${phoneNumber}`)}`
  if (method.recipeId !== 'thirdparty') return `E014: ${other(`email ${email}`)}`
  return `E016: ${other(`thirdPartyId ${thirdPartyId} and thirdPartyUserId ${thirdPartyUserId}`)}`
}

/** The core's text for a user who cannot become primary. */
export function primaryText({ id }: ImportedUser): string {
  const attempt = `We tried to create the primary user for the userId ${id}`
  return `E022: ${attempt} but the account info is already associated with another primary user.`
}
