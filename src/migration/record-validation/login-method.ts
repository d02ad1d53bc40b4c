import { readPassword } from './password.js'
import { ending, optional, type Reading, required } from './read-field.js'
import { coreInteger, isStoredInE164 } from './stored-form.js'
import { checkUnknown } from './unknown-fields.js'
import type { UserContext } from './validation-context.js'
import { readTenantIds } from './validation-context.js'

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
