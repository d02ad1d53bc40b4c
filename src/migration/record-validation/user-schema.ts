import { z } from 'zod'
import { isObject } from '../../base/options.js'
import type { ImportUser } from '../core/import-user.js'
import { isBlank, MAX_EXTERNAL_USER_ID_LENGTH, trimmed } from './normalise.js'
import { hashFormOf } from './password-hash.js'
import { type FindingCollector, fieldOf, NOT_UNICODE, type UserErrorCode } from './user-finding.js'

// What the core accepts of a record by itself, whatever tenants, roles and features the core has.

/** A check of one value. Its code travels in the issue, because zod knows no codes but its own. */
const rule =
  <Value>(code: UserErrorCode, message: string, isBroken: (value: Value) => boolean) =>
  ({ value, issues }: z.core.ParsePayload<Value>): void => {
    if (!isBroken(value)) return
    issues.push({ code: 'custom', params: { code }, message, input: value, continue: true })
  }

/** A text that the core stores only as a hash. */
const hashedText = () =>
  z.string().check(
    rule('wrong_type', 'This text is blank.', isBlank),
    rule('not_unicode', NOT_UNICODE, (text) => !text.isWellFormed()),
  )

/** A text that the core stores. Postgres cannot store NUL in text, and the row would stay `PROCESSING` forever. */
const text = () =>
  hashedText().check(
    rule('nul', 'The database of the core cannot store NUL (U+0000).', (value) =>
      value.includes('\0'),
    ),
  )

const textOf = (maxLength: number) =>
  text().check(
    rule(
      'too_long',
      `This text is longer than ${maxLength} characters.`,
      (value) => value.length > maxLength,
    ),
  )

/** The core drops a fraction, and wraps a number that Java's `int` cannot hold. */
const integerFrom = (min: number) =>
  z
    .number()
    .check(
      rule<number>(
        'out_of_range',
        `This number is below ${min} or above 2147483647.`,
        (value) => Math.trunc(value) < min || value > 2147483647,
      ),
    )

const userRole = z.object({ role: textOf(255), tenantIds: z.array(text()) })

const totpDevice = z.object({
  secretKey: textOf(256),
  period: integerFrom(1).optional(),
  skew: integerFrom(0).optional(),
  deviceName: textOf(256).optional(),
})

const timeJoined = z.number().check(
  rule<number>('in_future', 'This time is in the future.', (time) => time > Date.now()),
  rule<number>('out_of_range', 'This time is before 1970.', (time) => Math.trunc(time) < 0),
)

const isEmpty = (list: readonly unknown[]): boolean => list.length === 0

const ofEveryMethod = {
  tenantIds: z
    .array(text())
    .check(rule('no_tenant', 'A login method needs at least one tenant.', isEmpty))
    .optional(),
  isVerified: z.boolean().optional(),
  isPrimary: z.boolean().optional(),
  timeJoinedInMSSinceEpoch: timeJoined.optional(),
}

const UNKNOWN_ALGORITHM = 'The core knows the algorithms bcrypt, argon2 and firebase_scrypt.'
const NO_PASSWORD = 'This method needs passwordHash and hashingAlgorithm, or plainTextPassword.'

const passwordMethod = z
  .object({
    recipeId: z.literal('emailpassword'),
    ...ofEveryMethod,
    email: textOf(255),
    passwordHash: text().optional(),
    hashingAlgorithm: text()
      .check(rule('unknown_algorithm', UNKNOWN_ALGORITHM, (name) => hashFormOf(name) === undefined))
      .optional(),
    plainTextPassword: hashedText().optional(),
  })
  .check(
    rule(
      'no_password',
      NO_PASSWORD,
      ({ passwordHash, hashingAlgorithm, plainTextPassword }) =>
        (passwordHash === undefined || hashingAlgorithm === undefined) &&
        plainTextPassword === undefined,
    ),
    checkHash,
  )

const MAX_HASH_LENGTH = 256

/** The core checks a hash only if its algorithm is given. */
function checkHash({
  value: { passwordHash, hashingAlgorithm },
  issues,
}: z.core.ParsePayload<{
  passwordHash?: string | undefined
  hashingAlgorithm?: string | undefined
}>): void {
  if (passwordHash === undefined || hashingAlgorithm === undefined) return
  const refuse = (code: UserErrorCode, message: string): void => {
    issues.push({ code: 'custom', params: { code }, message, path: ['passwordHash'], input: '' })
  }
  if (passwordHash.length > MAX_HASH_LENGTH) {
    refuse('too_long', `This text is longer than ${MAX_HASH_LENGTH} characters.`)
  }
  if (hashFormOf(hashingAlgorithm)?.isAccepted(trimmed(passwordHash)) === false) {
    refuse('invalid_hash', 'This is not a hash of its hashingAlgorithm.')
  }
}

const thirdPartyMethod = z.object({
  recipeId: z.literal('thirdparty'),
  ...ofEveryMethod,
  email: textOf(255),
  thirdPartyId: textOf(28),
  thirdPartyUserId: textOf(256),
})

const passwordlessMethod = z
  .object({
    recipeId: z.literal('passwordless'),
    ...ofEveryMethod,
    email: textOf(255).optional(),
    phoneNumber: textOf(256).optional(),
  })
  .check(
    rule(
      'no_login',
      'This method needs email or phoneNumber.',
      ({ email, phoneNumber }) => email === undefined && phoneNumber === undefined,
    ),
  )

const METHODS = [passwordMethod, thirdPartyMethod, passwordlessMethod] as const
const RECIPES = METHODS.map(({ shape }) => shape.recipeId.value)

const user = z.object({
  externalUserId: textOf(MAX_EXTERNAL_USER_ID_LENGTH).optional(),
  userMetadata: z.custom<Record<string, unknown>>(isObject, 'This should be an object.').optional(),
  userRoles: z.array(userRole).optional(),
  totpDevices: z.array(totpDevice).optional(),
  loginMethods: z
    .array(z.discriminatedUnion('recipeId', METHODS))
    .check(rule('no_login_method', 'A user needs at least one login method.', isEmpty)),
})

/**
 * Refuses what the core refuses of the record alone. Returns the record itself, because it is sent as it was read;
 * `undefined` if it is refused.
 */
export function parseUser(value: unknown, { refuse }: FindingCollector): ImportUser | undefined {
  const { error } = user.safeParse(value, { reportInput: true })
  for (const issue of error?.issues ?? []) {
    const { code, message } = describeIssue(issue)
    refuse(code, issue.path.reduce(fieldOf, ''), message)
  }
  if (!isObject(value)) return undefined
  const tooDeep = Object.keys(value).filter((name) => isTooDeep(value[name], LEVEL_OF_MEMBERS))
  for (const name of tooDeep) refuse('too_deep', fieldOf('', name), TOO_DEEP)
  return error === undefined && tooDeep.length === 0 ? (value as unknown as ImportUser) : undefined
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a finite number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
}

function describeIssue(issue: z.core.$ZodIssue): {
  readonly code: UserErrorCode
  readonly message: string
} {
  if (issue.code === 'custom') {
    return { code: issue.params?.['code'] ?? 'wrong_type', message: issue.message }
  }
  if (issue.code === 'invalid_union' && Object(issue.input).recipeId !== undefined) {
    const message = `The core imports the recipes ${RECIPES.join(', ')}.`
    return { code: 'unknown_recipe', message }
  }
  // A list has no missing members, but it may have holes.
  const isMissing = issue.input === undefined && typeof issue.path.at(-1) === 'string'
  if (isMissing || issue.code === 'invalid_union') {
    return { code: 'required', message: 'This member is required.' }
  }
  const type = issue.code === 'invalid_type' ? TYPES[issue.expected] : undefined
  return { code: 'wrong_type', message: `This should be ${type ?? 'of another type'}.` }
}

/**
 * The core's JSON parser accepts 255 levels (Gson 2.12 and later). A call adds two levels, so a deeper record would
 * make the whole call unreadable.
 */
const MAX_LEVELS = 253

/** The members of a record are one level below the record itself. */
const LEVEL_OF_MEMBERS = 2

const TOO_DEEP = `With this member the record has more than ${MAX_LEVELS} levels: the core cannot read it.`

/** Whether a value at this level of its record is nested too deeply. */
function isTooDeep(value: unknown, level: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (level > MAX_LEVELS) return true
  return Object.values(value).some((member) => isTooDeep(member, level + 1))
}

/** The parts of a record in which the core reads some members and ignores any other. */
export function* partsOf(record: ImportUser): Generator<{
  readonly field: string
  readonly part: object
  readonly known: readonly string[]
}> {
  const { userRoles = [], totpDevices = [], loginMethods } = record
  yield { field: '', part: record, known: Object.keys(user.shape) }
  for (const [index, part] of userRoles.entries()) {
    yield { field: `userRoles[${index}]`, part, known: Object.keys(userRole.shape) }
  }
  for (const [index, part] of totpDevices.entries()) {
    yield { field: `totpDevices[${index}]`, part, known: Object.keys(totpDevice.shape) }
  }
  for (const [index, part] of loginMethods.entries()) {
    const method = METHODS[RECIPES.indexOf(part.recipeId)]
    yield { field: `loginMethods[${index}]`, part, known: Object.keys(method?.shape ?? {}) }
  }
}
