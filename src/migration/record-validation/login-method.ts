import { isStoredInE164 } from './phone-number.js'
import { checkUnknown, ending, optional, type Reading, required } from './read-field.js'
import { coreInteger, trimmed } from './stored-form.js'
import { readTenantIds, type UserContext } from './validation-context.js'

const LONGEST = { email: 255, thirdPartyId: 28, thirdPartyUserId: 256, phoneNumber: 256 } as const
/** The lengths in the core's messages. For `email` it differs from the actual limit. */
const NAMED_LENGTH = { ...LONGEST, email: 256 } as const

/** The parts of a method that are compared with other parts of the record. */
export interface ReadMethod {
  readonly field: string
  readonly tenantIds: readonly string[]
}

const RECIPES = {
  emailpassword: readEmailPassword,
  thirdparty: readThirdParty,
  passwordless: readPasswordless,
}

type Recipe = keyof typeof RECIPES

/** Returns `undefined` for a method of an unknown recipe, which the core skips. */
export function readLoginMethod(reading: Reading, context: UserContext): ReadMethod | undefined {
  const { field, findings } = reading
  const recipeId = required(reading, 'recipeId', 'string')
  const given = optional(reading, 'tenantIds', 'array of string')
  optional(reading, 'isVerified', 'boolean')
  optional(reading, 'isPrimary', 'boolean')
  const withoutDot = ending(reading, ' for a loginMethod')
  const timeJoined = optional(withoutDot, 'timeJoinedInMSSinceEpoch', 'integer')
  const recipe = recipeOf(recipeId)
  if (recipeId !== undefined && recipe === undefined) {
    findings.refuse('unknown_recipe', `${field}.recipeId`, UNKNOWN_RECIPE)
  }
  const suffix = ` for ${recipeId ?? 'null'} recipe.`
  const tenantIds = readTenantIds(given, { field, suffix, findings }, context)
  if (timeJoined !== undefined) checkTimeJoined(coreInteger(timeJoined, 64), reading)
  checkUnknown(reading, recipe ?? 'method')
  if (recipe === undefined) return undefined
  RECIPES[recipe](reading)
  return { field, tenantIds }
}

const UNKNOWN_RECIPE =
  'Invalid recipeId for loginMethod. Pass one of emailpassword, thirdparty or, passwordless!'

const recipeOf = (recipeId: string | undefined): Recipe | undefined =>
  recipeId !== undefined && Object.hasOwn(RECIPES, recipeId) ? (recipeId as Recipe) : undefined

function checkTimeJoined(timeJoined: number, { field, findings }: Reading): void {
  const place = `${field}.timeJoinedInMSSinceEpoch`
  if (timeJoined > Date.now()) {
    findings.refuse('in_future', place, 'timeJoined cannot be in future for a loginMethod.')
  }
  if (timeJoined < 0) {
    findings.refuse('out_of_range', place, 'timeJoined cannot be < 0 for a loginMethod.')
  }
}

function readEmailPassword(method: Reading): void {
  const reading = ending(method, ' for an emailpassword recipe.')
  const email = required(reading, 'email', 'string')
  readPassword(reading, () => checkLength(reading, 'email', email))
}

function readThirdParty(method: Reading): void {
  const reading = ending(method, ' for a thirdparty recipe.')
  const email = required(reading, 'email', 'string')
  const thirdPartyId = required(reading, 'thirdPartyId', 'string')
  const thirdPartyUserId = required(reading, 'thirdPartyUserId', 'string')
  checkLength(reading, 'email', email)
  checkLength(reading, 'thirdPartyId', thirdPartyId)
  checkLength(reading, 'thirdPartyUserId', thirdPartyUserId)
}

function readPasswordless(method: Reading): void {
  const reading = ending(method, ' for a passwordless recipe.')
  const { field, findings } = reading
  const email = optional(reading, 'email', 'string')
  const phoneNumber = optional(reading, 'phoneNumber', 'string')
  checkLength(reading, 'email', email)
  checkLength(reading, 'phoneNumber', phoneNumber)
  if (email === undefined && phoneNumber === undefined) {
    const message = 'Either email or phoneNumber is required for a passwordless recipe.'
    findings.refuse('no_login', field, message)
  }
  if (phoneNumber !== undefined && !isStoredInE164(phoneNumber)) {
    const message = 'Not a phone number with a country code: the core stores it unchanged.'
    findings.warn('phone_not_e164', `${field}.phoneNumber`, message)
  }
}

function checkLength(
  { field, findings }: Reading,
  name: keyof typeof LONGEST,
  value: string | undefined,
): void {
  if (value === undefined || value.length <= LONGEST[name]) return
  const message = `${name} ${value} is too long. Max length is ${NAMED_LENGTH[name]}.`
  findings.refuse('too_long', `${field}.${name}`, message)
}

const MAX_HASH_LENGTH = 256

/** Calls `checkEmail` between the checks of the password, as the core does. */
function readPassword(reading: Reading, checkEmail: () => void): void {
  const { field, findings } = reading
  const hash = optional(reading, 'passwordHash', 'string')
  const algorithm = optional(reading, 'hashingAlgorithm', 'string')
  const plainText = optional(reading, 'plainTextPassword', 'string')
  if ((hash === undefined || algorithm === undefined) && plainText === undefined) {
    findings.refuse('no_password', field, NO_PASSWORD)
  }
  checkEmail()
  if (algorithm !== undefined) checkHash(hash, algorithm, reading)
  else if (hash !== undefined && plainText !== undefined) {
    findings.warn('hash_unchecked', `${field}.passwordHash`, UNCHECKED)
  }
}

function checkHash(given: string | undefined, algorithm: string, reading: Reading): void {
  const { field, findings } = reading
  const form = hashFormOf(algorithm)
  if (form === undefined) {
    findings.refuse('unknown_algorithm', `${field}.hashingAlgorithm`, UNKNOWN_ALGORITHM)
    return
  }
  if (given === undefined) return
  const place = `${field}.passwordHash`
  if (given.length > MAX_HASH_LENGTH) {
    findings.refuse('too_long', place, 'passwordHash is too long. Max length is 256.')
  }
  const hash = trimmed(given)
  if (!form.isAccepted(hash)) findings.refuse('invalid_hash', place, form.refusal)
  else if (!form.isComplete(hash)) findings.warn('hash_incomplete', place, INCOMPLETE)
}

const NO_PASSWORD =
  'Either (passwordHash, hashingAlgorithm) or plainTextPassword is required for an emailpassword recipe.'
const UNKNOWN_ALGORITHM =
  'Invalid hashingAlgorithm for emailpassword recipe. Pass one of bcrypt, argon2 or, firebase_scrypt!'
const UNCHECKED =
  'Without hashingAlgorithm the core does not check the hash, and uses it in place of the password.'
const INCOMPLETE =
  'Begins like a hash of its algorithm but is incomplete: no password will match it.'

type HashingAlgorithm = 'BCRYPT' | 'ARGON2' | 'FIREBASE_SCRYPT'

interface HashForm {
  /** Whether the core accepts the hash. Otherwise the core refuses the user with the text `refusal`. */
  readonly isAccepted: (hash: string) => boolean
  readonly refusal: string
  /** Whether a password can be checked against the hash. */
  readonly isComplete: (hash: string) => boolean
}

const BCRYPT = /^\$2[abxy]\$(?:0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}$/
const ARGON2 =
  /^\$argon2(?:id|i|d)(?:\$v=\d+)?\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{16,}$/
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

const FORMS: Readonly<Record<HashingAlgorithm, HashForm>> = {
  BCRYPT: {
    isAccepted: (hash) => /^\$2[abxy]/.test(hash),
    refusal: 'Password hash is in invalid BCrypt format',
    isComplete: (hash) => BCRYPT.test(hash),
  },
  ARGON2: {
    isAccepted: (hash) => /^\$argon2[id]/.test(hash),
    refusal: 'Password hash is in invalid Argon2 format',
    isComplete: (hash) => ARGON2.test(hash),
  },
  FIREBASE_SCRYPT: {
    isAccepted: (hash) => firebaseParts(hash) !== undefined,
    refusal: 'Password hash is in invalid Firebase SCrypt format',
    isComplete: (hash) => isCompleteFirebase(firebaseParts(hash)),
  },
}

/** Finds the form by its name, which is trimmed and case-insensitive, as in the core. */
function hashFormOf(algorithm: string): HashForm | undefined {
  const name = trimmed(algorithm).toUpperCase()
  return Object.hasOwn(FORMS, name) ? FORMS[name as HashingAlgorithm] : undefined
}

interface FirebaseParts {
  readonly hash: string
  readonly salt: string
  readonly memory: number
  readonly rounds: number
  readonly separator: string
}

/** Parses `$f_scrypt$<hash>$<salt>`, followed by `$m=<n>`, `$r=<n>` and `$s=<separator>` in any order. */
function firebaseParts(text: string): FirebaseParts | undefined {
  const [before, prefix, hash, salt, ...rest] = split(text, '$')
  if (before !== '' || prefix !== 'f_scrypt' || rest.length !== 3) return undefined
  const memory = after(rest, 'm=')
  const rounds = after(rest, 'r=')
  const separator = after(rest, 's=')
  if (hash === undefined || salt === undefined || separator === undefined) return undefined
  if (!isJavaInt(memory) || !isJavaInt(rounds)) return undefined
  return { hash, salt, memory: Number(memory), rounds: Number(rounds), separator }
}

/** Returns the value after the mark, from the first part that begins with it. */
function after(parts: readonly string[], mark: string): string | undefined {
  const part = parts.find((text) => text.startsWith(mark))
  return part === undefined ? undefined : split(part, mark)[1]
}

/** Splits like Java: without empty parts at the end. */
function split(text: string, separator: string): string[] {
  const parts = text.split(separator)
  while (parts.at(-1) === '') parts.pop()
  return parts
}

const isJavaInt = (text: string | undefined): text is string =>
  text !== undefined && /^[+-]?\d+$/.test(text) && Number(text) === (Number(text) | 0)

function isCompleteFirebase(parts: FirebaseParts | undefined): boolean {
  if (parts === undefined) return false
  const { hash, salt, memory, rounds, separator } = parts
  return [hash, salt, separator].every((part) => BASE64.test(part)) && memory > 0 && rounds > 0
}
