import { randomUUID } from 'node:crypto'
import { isObject } from '../../../../src/base/options.js'
import { Refused } from '../../../../src/testing/core/mint.js'
import {
  type ImportedUser,
  isLinkingEnabled,
  type LoginMethod,
  type ReadContext,
  type TotpDevice,
  type UserRole,
} from './imported-user.js'
import { type JsonObject, trim } from './input.js'
import { normaliseEmail, normalisePhoneNumber } from './normal-forms.js'

export type Reading =
  | { readonly user: ImportedUser }
  /** In the words and the order of the core. */
  | { readonly errors: readonly string[] }

interface Kinds {
  string: string
  integer: number
  long: number
  boolean: boolean
  object: JsonObject
  'array of string': string[]
  'array of object': JsonObject[]
}

const IS: { readonly [Kind in keyof Kinds]: (value: unknown) => boolean } = {
  string: isFullString,
  integer: (value) => typeof value === 'number',
  long: (value) => typeof value === 'number',
  boolean: (value) => typeof value === 'boolean',
  object: isObject,
  'array of string': (value) => Array.isArray(value) && value.every(isFullString),
  'array of object': (value) => Array.isArray(value) && value.every(isObject),
}

/** White space is none in Java if it does not break a line. */
function isFullString(value: unknown): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Java counts four of them.
  const blank = /^[\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]*$/
  return typeof value === 'string' && !blank.test(value)
}

/** Reads the members of one object; adds faults to its `errors`, which end with its `suffix`. */
class Fields {
  readonly object: JsonObject
  readonly suffix: string
  readonly errors: string[]

  constructor(object: JsonObject, suffix: string, errors: string[]) {
    this.object = object
    this.suffix = suffix
    this.errors = errors
  }

  optional<Kind extends keyof Kinds>(name: string, kind: Kind, suffix = this.suffix) {
    if (!Object.hasOwn(this.object, name)) return undefined
    const value = this.object[name]
    if (!IS[kind](value)) {
      // An explicit null has a wrong type; it is not absent.
      this.errors.push(`${name} should be of type ${kind === 'long' ? 'integer' : kind}${suffix}`)
      return undefined
    }
    const isNumber = kind === 'integer' || kind === 'long'
    return (isNumber ? integer(value, kind === 'long' ? 64 : 32) : value) as Kinds[Kind]
  }

  required<Kind extends keyof Kinds>(name: string, kind: Kind) {
    if (!Object.hasOwn(this.object, name)) this.errors.push(`${name} is required${this.suffix}`)
    return this.optional(name, kind)
  }

  limit(name: string, text: string | undefined, longest: number): void {
    if (text === undefined || text.length <= longest) return
    this.errors.push(`${name} ${text} is too long. Max length is ${longest}.`)
  }
}

/** The core accepts any number as an integer, drops its fraction and keeps the lowest bits. */
const integer = (value: unknown, bits: 32 | 64): number =>
  Number(BigInt.asIntN(bits, BigInt(Math.trunc(Number(value)))))

const MAX_EXTERNAL_ID_LENGTH = 128
const LONGEST = 256

/**
 * Checks a user like the core. Unknown members are ignored.
 * @throws {Refused} if the core answers with 500
 */
export function readUser(value: unknown, context: ReadContext): Reading {
  if (!isObject(value)) {
    const text = JSON.stringify(value)
    throw new Refused(500, `java.lang.IllegalStateException: Not a JSON Object: ${text}`)
  }
  const errors: string[] = []
  const fields = new Fields(value, '.', errors)
  const givenId = fields.optional('externalUserId', 'string')
  const userMetadata = fields.optional('userMetadata', 'object')
  const userRoles = fields
    .optional('userRoles', 'array of object')
    ?.flatMap((role) => readUserRole(role, context, errors) ?? [])
  const totpDevices = readTotpDevices(fields.optional('totpDevices', 'array of object'))
  const loginMethods = readLoginMethods(fields.required('loginMethods', 'array of object'))
  const externalUserId = readExternalId(givenId)
  compareTenants(userRoles ?? [], loginMethods, { context, errors })
  const primary = primaryMethod(loginMethods)
  if (errors.length > 0 || primary === undefined) return { errors }
  const id = primary.superTokensUserId
  return { user: { id, externalUserId, userMetadata, userRoles, totpDevices, loginMethods } }

  function readTotpDevices(devices: JsonObject[] | undefined) {
    if (devices === undefined || context.features.has('mfa')) {
      return devices?.flatMap((device) => readTotpDevice(device, errors) ?? [])
    }
    errors.push('MFA must be enabled to import totp devices.')
    return undefined
  }

  function readLoginMethods(methods: JsonObject[] | undefined): LoginMethod[] {
    if (methods === undefined) return []
    if (methods.length === 0) errors.push('At least one loginMethod is required.')
    if (methods.length > 1 && !isLinkingEnabled(context.features)) {
      errors.push('Account linking must be enabled to import multiple loginMethods.')
    }
    const primaries = methods.filter((method) => method['isPrimary'] === true)
    for (const _ of primaries.slice(1)) {
      errors.push('No two loginMethods can have isPrimary as true.')
    }
    return methods.flatMap((method) => readLoginMethod(method, context, errors) ?? [])
  }

  function readExternalId(id: string | undefined): string | undefined {
    if (id === undefined) return undefined
    fields.limit('externalUserId', id, MAX_EXTERNAL_ID_LENGTH)
    if (context.externalIds.has(id)) {
      errors.push(`externalUserId ${id} is not unique. It is already used by another user.`)
    }
    context.externalIds.add(id)
    return trim(id)
  }
}

/**
 * Returns the method that is marked as primary; otherwise the oldest, or the first of equally old
 * ones.
 */
function primaryMethod(methods: readonly LoginMethod[]): LoginMethod | undefined {
  const [oldest] = methods.toSorted(
    (a, b) => a.timeJoinedInMSSinceEpoch - b.timeJoinedInMSSinceEpoch,
  )
  return methods.find((method) => method.isPrimary) ?? oldest
}

const DEFAULT_PERIOD = 30
const DEFAULT_SKEW = 1
const MAX_ROLE_LENGTH = 255

/** @throws {Refused} with an error of the core for a role without a name */
function readUserRole(
  object: JsonObject,
  context: ReadContext,
  errors: string[],
): UserRole | undefined {
  const suffix = ' for a user role.'
  const fields = new Fields(object, suffix, errors)
  const given = fields.required('role', 'string')
  const givenTenants = fields.required('tenantIds', 'array of string')
  if (given === undefined) throw new Refused(500, NO_ROLE)
  fields.limit('role', given, MAX_ROLE_LENGTH)
  const role = trim(given)
  if (!context.roles.has(role)) errors.push(`Role ${role} does not exist.`)
  const tenantIds = readTenantIds(givenTenants, context, { suffix, errors })
  return { role, tenantIds }
}

const NO_ROLE =
  'java.lang.NullPointerException: Cannot invoke "String.length()" because "role" is null'

function readTotpDevice(object: JsonObject, errors: string[]): TotpDevice | undefined {
  const fields = new Fields(object, ' for a totp device.', errors)
  const secretKey = fields.required('secretKey', 'string')
  const period = fields.optional('period', 'integer') ?? DEFAULT_PERIOD
  const skew = fields.optional('skew', 'integer') ?? DEFAULT_SKEW
  const deviceName = fields.optional('deviceName', 'string')
  fields.limit('TOTP secretKey', secretKey, LONGEST)
  if (period < 1) errors.push('period should be > 0 for a totp device.')
  if (skew < 0) errors.push('skew should be >= 0 for a totp device.')
  fields.limit('TOTP deviceName', deviceName, LONGEST)
  if (secretKey === undefined) return undefined
  return { secretKey, period, skew, deviceName: deviceName && trim(deviceName) }
}

/** The core's last checks: each role's tenants must be in the login methods, which must have tenants. */
function compareTenants(
  roles: readonly UserRole[],
  methods: readonly LoginMethod[],
  { context, errors }: { readonly context: ReadContext; readonly errors: string[] },
): void {
  for (const tenantId of roles.flatMap((role) => role.tenantIds)) {
    if (tenantId === 'public' || methods.some((method) => method.tenantIds.includes(tenantId))) {
      continue
    }
    errors.push(`TenantId ${tenantId} for a user role does not exist in loginMethods.`)
  }
  for (const method of methods) {
    if (method.tenantIds.length > 0) continue
    errors.push(`LoginMethod '${printed(method, context)}' has no tenantId`)
  }
}

function printed(method: LoginMethod, { rules: { printsMethods } }: ReadContext): string {
  if (printsMethods) return JSON.stringify(method)
  const hash = method.superTokensUserId.slice(0, 8)
  return `io.supertokens.pluginInterface.bulkimport.BulkImportUser$LoginMethod@${hash}`
}

type Login = Omit<Partial<LoginMethod>, 'recipeId'>

const RECIPES: Readonly<Record<string, (part: Part) => Login>> = {
  emailpassword: readEmailPassword,
  thirdparty: readThirdParty,
  passwordless: readPasswordless,
}

interface Part {
  readonly fields: Fields
  readonly errors: string[]
  readonly context: ReadContext
}

const MAX_EMAIL_LENGTH = 255
const MAX_PROVIDER_ID_LENGTH = 28

/** Returns `undefined` if the recipe is unknown, because the rest cannot be checked then. */
function readLoginMethod(
  method: JsonObject,
  context: ReadContext,
  errors: string[],
): LoginMethod | undefined {
  const common = new Fields(method, ' for a loginMethod.', errors)
  const recipeId = common.required('recipeId', 'string')
  const tenantIds = common.optional('tenantIds', 'array of string')
  const isVerified = common.optional('isVerified', 'boolean') ?? false
  const isPrimary = common.optional('isPrimary', 'boolean') ?? false
  const asked = common.optional('timeJoinedInMSSinceEpoch', 'long', ' for a loginMethod')

  const isKnown = recipeId === undefined || Object.hasOwn(RECIPES, recipeId)
  if (!isKnown) errors.push(UNKNOWN_RECIPE)
  // The core also prints null here.
  const suffix = ` for ${recipeId ?? null} recipe.`
  const tenants = readTenantIds(tenantIds, context, { suffix, errors })
  const timeJoinedInMSSinceEpoch = readTimeJoined(asked, context.nowMs, errors)
  const id = context.areStored ? String(method['superTokensUserId']) : randomUUID()
  if (recipeId === undefined || !isKnown) return undefined

  const article = recipeId === 'emailpassword' ? 'an' : 'a'
  const fields = new Fields(method, ` for ${article} ${recipeId} recipe.`, errors)
  const login = RECIPES[recipeId]?.({ fields, errors, context })
  const head = { tenantIds: tenants, isVerified, isPrimary, timeJoinedInMSSinceEpoch, recipeId }
  return { ...head, ...login, superTokensUserId: id }
}

const UNKNOWN_RECIPE =
  'Invalid recipeId for loginMethod. Pass one of emailpassword, thirdparty or, passwordless!'

function readTimeJoined(asked: number | undefined, nowMs: number, errors: string[]): number {
  if (asked === undefined) return nowMs
  if (asked > nowMs) errors.push('timeJoined cannot be in future for a loginMethod.')
  if (asked < 0) errors.push('timeJoined cannot be < 0 for a loginMethod.')
  return asked
}

function readEmailPassword({ fields, errors, context }: Part): Login {
  const email = fields.required('email', 'string')
  const passwordHash = fields.optional('passwordHash', 'string')
  const hashingAlgorithm = fields.optional('hashingAlgorithm', 'string')
  const plainTextPassword = fields.optional('plainTextPassword', 'string')
  const isHashed = passwordHash !== undefined && hashingAlgorithm !== undefined
  if (!isHashed && plainTextPassword === undefined) errors.push(NO_PASSWORD)

  const login = { email: readEmail(email, errors), plainTextPassword }
  const algorithm = hashingAlgorithm === undefined ? undefined : toAlgorithm(hashingAlgorithm)
  if (hashingAlgorithm !== undefined && algorithm === undefined) errors.push(UNKNOWN_ALGORITHM)
  // Without an algorithm, the core stores the hash unchanged.
  if (algorithm === undefined || passwordHash === undefined) {
    return { ...login, passwordHash, hashingAlgorithm: algorithm ?? hashingAlgorithm }
  }
  if (passwordHash.length > LONGEST) {
    errors.push(`passwordHash is too long. Max length is ${LONGEST}.`)
  }
  const hash = trim(passwordHash)
  const fault = hashFault(hash, algorithm, context.hasFirebaseSignerKey)
  if (fault !== undefined) errors.push(fault)
  return { ...login, passwordHash: hash, hashingAlgorithm: algorithm }
}

const NO_PASSWORD =
  'Either (passwordHash, hashingAlgorithm) or plainTextPassword is required for an emailpassword recipe.'
const UNKNOWN_ALGORITHM =
  'Invalid hashingAlgorithm for emailpassword recipe. Pass one of bcrypt, argon2 or, firebase_scrypt!'

function readThirdParty({ fields, errors }: Part): Login {
  const email = fields.required('email', 'string')
  const thirdPartyId = fields.required('thirdPartyId', 'string')
  const thirdPartyUserId = fields.required('thirdPartyUserId', 'string')
  const login = { email: readEmail(email, errors), thirdPartyId, thirdPartyUserId }
  fields.limit('thirdPartyId', thirdPartyId, MAX_PROVIDER_ID_LENGTH)
  fields.limit('thirdPartyUserId', thirdPartyUserId, LONGEST)
  return login
}

function readPasswordless({ fields, errors }: Part): Login {
  const givenEmail = fields.optional('email', 'string')
  const givenNumber = fields.optional('phoneNumber', 'string')
  const email = readEmail(givenEmail, errors)
  fields.limit('phoneNumber', givenNumber, LONGEST)
  const phoneNumber = givenNumber === undefined ? undefined : normalisePhoneNumber(givenNumber)
  if (email === undefined && phoneNumber === undefined) {
    errors.push('Either email or phoneNumber is required for a passwordless recipe.')
  }
  return { email, phoneNumber }
}

function readEmail(email: string | undefined, errors: string[]): string | undefined {
  if (email === undefined) return undefined
  // The core has the same text, although it accepts one character less.
  if (email.length > MAX_EMAIL_LENGTH) errors.push(`email ${email} is too long. Max length is 256.`)
  return normaliseEmail(email)
}

/** `$f_scrypt$<hash>$<salt>`, then memory, rounds and salt separator in any order. */
const FIREBASE_HASH =
  /^\$f_scrypt\$[^$]+\$[^$]+(?=.*\$m=[+-]?\d+(?:\$|$))(?=.*\$r=[+-]?\d+(?:\$|$))(?=.*\$s=[^$]+)(?:\$[^$]+){3}\$*$/

/** Of a hash with bcrypt or Argon2, the core checks only the beginning. */
const ALGORITHMS = {
  BCRYPT: { title: 'BCrypt', form: /^\$2[abxy]/ },
  ARGON2: { title: 'Argon2', form: /^\$argon2[id]/ },
  FIREBASE_SCRYPT: { title: 'Firebase SCrypt', form: FIREBASE_HASH },
} as const

type HashingAlgorithm = keyof typeof ALGORITHMS

function toAlgorithm(text: string): HashingAlgorithm | undefined {
  const name = trim(text).toUpperCase()
  return Object.hasOwn(ALGORITHMS, name) ? (name as HashingAlgorithm) : undefined
}

/**
 * Returns the core's objection to a hash.
 * @throws {Refused} with an error of the core if it lacks Firebase's signer key
 */
function hashFault(
  hash: string,
  algorithm: HashingAlgorithm,
  hasFirebaseSignerKey: boolean,
): string | undefined {
  if (algorithm === 'FIREBASE_SCRYPT' && !hasFirebaseSignerKey) {
    const exception = 'java.lang.IllegalStateException'
    throw new Refused(500, `${exception}: 'firebase_password_hashing_signer_key' cannot be null`)
  }
  const { title, form } = ALGORITHMS[algorithm]
  return form.test(hash) ? undefined : `Password hash is in invalid ${title} format`
}

/** Returns the tenants in the core's spelling, without the invalid ones: the default for those of a wrong type. */
function readTenantIds(
  tenantIds: readonly string[] = ['public'],
  context: ReadContext,
  { suffix, errors }: { readonly suffix: string; readonly errors: string[] },
): string[] {
  return tenantIds.flatMap((tenantId) => {
    if (tenantId === 'public') return [tenantId]
    if (!context.features.has('multi_tenancy')) {
      errors.push('Multitenancy must be enabled before importing users to a different tenant.')
      return []
    }
    const normalised = trim(tenantId).toLowerCase()
    if (context.tenants.has(normalised)) return [normalised]
    errors.push(`Invalid tenantId: ${tenantId}${suffix}`)
    return []
  })
}
