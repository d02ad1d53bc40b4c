import { z } from 'zod'
import { isObject } from '../../base/options.js'
import { isBlank, MAX_EXTERNAL_USER_ID_LENGTH } from './normalise.js'
import { isHashAlgorithm } from './password-hash.js'
import { type Finding, fieldOf, finding, type UserErrorCode } from './user-finding.js'

// What the core accepts of each value of a record, and which members it reads.

/** What a check finds. It travels in the issue, because zod knows no codes but its own. */
const as = (code: UserErrorCode, message?: string) => ({ params: { code, message } })

/** A text that the core stores only as a hash. */
const hashedText = () =>
  z
    .string()
    .refine((text) => !isBlank(text), as('wrong_type', 'This text is blank.'))
    .refine((text) => text.isWellFormed(), as('not_unicode'))

/** A text that the core stores. Postgres cannot store NUL in text, and the row would stay `PROCESSING` forever. */
const text = () => hashedText().refine((value) => !value.includes('\0'), as('nul'))

const textOf = (maxLength: number) =>
  text().refine(
    (value) => value.length <= maxLength,
    as('too_long', `This text is longer than ${maxLength} characters.`),
  )

/** The core drops a fraction, and wraps a number that Java's `int` cannot hold. */
const integerFrom = (min: number) =>
  z
    .number()
    .refine(
      (value) => Math.trunc(value) >= min && value <= 2147483647,
      as('out_of_range', `This number is below ${min} or above 2147483647.`),
    )

const isNotEmpty = (list: readonly unknown[]): boolean => list.length > 0

const ofEveryMethod = {
  tenantIds: z.array(text()).refine(isNotEmpty, as('no_tenant')).optional(),
  isVerified: z.boolean().optional(),
  isPrimary: z.boolean().optional(),
  timeJoinedInMSSinceEpoch: z
    .number()
    .refine((time) => time <= Date.now(), as('in_future'))
    .refine((time) => Math.trunc(time) >= 0, as('out_of_range', 'This time is before 1970.'))
    .optional(),
}

const loginMethod = z.discriminatedUnion('recipeId', [
  z.strictObject({
    recipeId: z.literal('emailpassword'),
    ...ofEveryMethod,
    email: textOf(255),
    passwordHash: textOf(256).optional(),
    hashingAlgorithm: text().refine(isHashAlgorithm, as('unknown_algorithm')).optional(),
    plainTextPassword: hashedText().optional(),
  }),
  z.strictObject({
    recipeId: z.literal('thirdparty'),
    ...ofEveryMethod,
    email: textOf(255),
    thirdPartyId: textOf(28),
    thirdPartyUserId: textOf(256),
  }),
  z.strictObject({
    recipeId: z.literal('passwordless'),
    ...ofEveryMethod,
    email: textOf(255).optional(),
    phoneNumber: textOf(256).optional(),
  }),
])

const user = z.strictObject({
  externalUserId: textOf(MAX_EXTERNAL_USER_ID_LENGTH).optional(),
  userMetadata: z.custom(isObject, as('wrong_type', 'This should be of type object.')).optional(),
  userRoles: z.array(z.strictObject({ role: textOf(255), tenantIds: z.array(text()) })).optional(),
  totpDevices: z
    .array(
      z.strictObject({
        secretKey: textOf(256),
        period: integerFrom(1).optional(),
        skew: integerFrom(0).optional(),
        deviceName: textOf(256).optional(),
      }),
    )
    .optional(),
  loginMethods: z.array(loginMethod).refine(isNotEmpty, as('no_login_method')),
})

/** Yields what is wrong with the single values of a record, and the members that the core ignores. */
export function* valueFindings(value: unknown): Generator<Finding> {
  const { error } = user.safeParse(value, { reportInput: true })
  for (const issue of error?.issues ?? []) yield* findingsOf(issue)
  if (!isObject(value)) return
  for (const [name, member] of Object.entries(value)) {
    if (isTooDeep(member, LEVEL_OF_MEMBERS)) yield finding('too_deep', fieldOf('', name))
  }
}

function findingsOf(issue: z.core.$ZodIssue): Finding[] {
  const field = issue.path.reduce(fieldOf, '')
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((name) => finding('unknown_member', fieldOf(field, name)))
    case 'custom':
      return [finding(issue.params?.['code'], field, issue.params?.['message'])]
    case 'invalid_union':
      return [finding('unknown_recipe', field)]
    default: {
      // A list has no missing members, but it may have holes.
      const isMissing = issue.input === undefined && typeof issue.path.at(-1) === 'string'
      if (isMissing) return [finding('required', field)]
      const type = issue.code === 'invalid_type' ? issue.expected : 'another type'
      return [finding('wrong_type', field, `This should be of type ${type}.`)]
    }
  }
}

/**
 * The core's JSON parser accepts 255 levels (Gson 2.12 and later). A call adds two levels, so a deeper record would
 * make the whole call unreadable.
 */
const MAX_LEVELS = 253

/** The members of a record are one level below the record itself. */
const LEVEL_OF_MEMBERS = 2

/** Whether a value at this level of its record is nested too deeply. */
function isTooDeep(value: unknown, level: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (level > MAX_LEVELS) return true
  return Object.values(value).some((member) => isTooDeep(member, level + 1))
}
