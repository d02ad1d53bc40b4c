import { randomUUID } from 'node:crypto'
import type { JsonObject } from '../json-input.js'
import { type FieldReader, fieldReader } from './field-reader.js'
import type { LoginMethod, ReadContext } from './imported-user.js'
import { trim } from './java-text.js'
import { normaliseEmail, normalisePhoneNumber } from './normalise.js'
import { hashFault, toAlgorithm } from './password-hash.js'
import { readTenantIds } from './read-tenants.js'

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
