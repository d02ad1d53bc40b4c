import { randomUUID } from 'node:crypto'
import phone from 'google-libphonenumber'
import { Refused } from '../../../../src/testing/core/mint.js'
import { type FieldReader, fieldReader } from './field-reader.js'
import type { LoginMethod, ReadContext } from './imported-user.js'
import { type JsonObject, trim } from './input.js'

type Login = Omit<Partial<LoginMethod>, 'recipeId'>

const RECIPES: Readonly<Record<string, (part: Part) => Login>> = {
  emailpassword: readEmailPassword,
  thirdparty: readThirdParty,
  passwordless: readPasswordless,
}

interface Part {
  readonly fields: FieldReader
  readonly errors: string[]
  readonly context: ReadContext
}

const MAX_EMAIL_LENGTH = 255
const MAX_PROVIDER_ID_LENGTH = 28
const LONGEST = 256

/** Returns `undefined` if the recipe is unknown, because the rest cannot be checked then. */
export function readLoginMethod(
  method: JsonObject,
  context: ReadContext,
  errors: string[],
): LoginMethod | undefined {
  const common = fieldReader(method, ' for a loginMethod.', errors)
  const recipeId = common.required('recipeId', 'string')
  const tenantIds = common.optional('tenantIds', 'array of string')
  const isVerified = common.optional('isVerified', 'boolean') ?? false
  const isPrimary = common.optional('isPrimary', 'boolean') ?? false
  const asked = common.optional('timeJoinedInMSSinceEpoch', 'long', ' for a loginMethod')

  const isKnown = recipeId === undefined || Object.hasOwn(RECIPES, recipeId)
  if (!isKnown) errors.push(UNKNOWN_RECIPE)
  // The core also prints null here.
  const suffix = ` for ${recipeId ?? null} recipe.`
  const tenants = readTenantIds(tenantIds ?? ['public'], context, { suffix, errors })
  const timeJoinedInMSSinceEpoch = readTimeJoined(asked, context.nowMs, errors)
  const id = context.areStored ? String(method['superTokensUserId']) : randomUUID()
  if (recipeId === undefined || !isKnown) return undefined

  const article = recipeId === 'emailpassword' ? 'an' : 'a'
  const fields = fieldReader(method, ` for ${article} ${recipeId} recipe.`, errors)
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
  limitLength({ thirdPartyId }, MAX_PROVIDER_ID_LENGTH, errors)
  limitLength({ thirdPartyUserId }, LONGEST, errors)
  return login
}

function readPasswordless({ fields, errors }: Part): Login {
  const givenEmail = fields.optional('email', 'string')
  const givenNumber = fields.optional('phoneNumber', 'string')
  const email = readEmail(givenEmail, errors)
  limitLength({ phoneNumber: givenNumber }, LONGEST, errors)
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

/** Checks the one member, and names it in the error. */
function limitLength(
  member: Record<string, string | undefined>,
  longest: number,
  errors: string[],
): void {
  for (const [name, text] of Object.entries(member)) {
    if (text === undefined || text.length <= longest) continue
    errors.push(`${name} ${text} is too long. Max length is ${longest}.`)
  }
}

export function normaliseEmail(email: string): string {
  return trim(email).toLowerCase()
}

const numbers = phone.PhoneNumberUtil.getInstance()

/**
 * Returns E.164 if the core's library can parse the number, which drops a trunk zero; otherwise
 * trims it.
 */
export function normalisePhoneNumber(phoneNumber: string): string {
  try {
    return numbers.format(numbers.parse(phoneNumber), phone.PhoneNumberFormat.E164)
  } catch {
    return trim(phoneNumber)
  }
}

const PREFIXES = {
  BCRYPT: ['$2a', '$2b', '$2x', '$2y'],
  ARGON2: ['$argon2id', '$argon2i', '$argon2d'],
  FIREBASE_SCRYPT: [],
} as const

export type HashingAlgorithm = keyof typeof PREFIXES

const NAMES = { BCRYPT: 'BCrypt', ARGON2: 'Argon2', FIREBASE_SCRYPT: 'Firebase SCrypt' } as const

function toAlgorithm(text: string): HashingAlgorithm | undefined {
  const name = trim(text).toUpperCase()
  return Object.hasOwn(PREFIXES, name) ? (name as HashingAlgorithm) : undefined
}

/**
 * Returns the core's objection to a hash, of which it checks only the beginning.
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
  const isOfForm =
    algorithm === 'FIREBASE_SCRYPT'
      ? firebaseParts(hash) !== undefined
      : PREFIXES[algorithm].some((prefix) => hash.startsWith(prefix))
  return isOfForm ? undefined : `Password hash is in invalid ${NAMES[algorithm]} format`
}

interface FirebaseParts {
  readonly hash: string
  readonly salt: string
  /** The exponent of scrypt's cost. */
  readonly memory: number
  readonly rounds: number
  readonly separator: string
}

/** Parses `$f_scrypt$<hash>$<salt>`, then memory, rounds and salt separator in any order. */
export function firebaseParts(text: string): FirebaseParts | undefined {
  const [empty, name, hash, salt, ...settings] = text.replace(/\$+$/, '').split('$')
  if (empty !== '' || name !== 'f_scrypt' || settings.length !== 3) return undefined
  const [memory, rounds, separator] = [/^m=([+-]?\d+)$/, /^r=([+-]?\d+)$/, /^s=(.+)/].map((form) =>
    settings.map((setting) => form.exec(setting)?.[1]).find(Boolean),
  )
  if (hash === undefined || salt === undefined || separator === undefined) return undefined
  if (memory === undefined || rounds === undefined) return undefined
  return { hash, salt, memory: Number(memory), rounds: Number(rounds), separator }
}

/** Returns the tenants in the core's spelling, without the invalid ones. */
export function readTenantIds(
  tenantIds: readonly string[],
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
