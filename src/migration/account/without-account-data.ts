import { isRecord } from '../../base/options.js'
import { secretsOf } from '../core/cut-secrets.js'
import { lowerCased } from '../record-validation/core-trim.js'

const BOTH = '(passwordHash, hashingAlgorithm) or plainTextPassword'

/** What the core's validation says of a record, and of a call that it cannot read. */
const VALIDATION = [
  'Invalid Json Input',
  '<word> is required<suffix>',
  '<word> should be of type <type><suffix>',
  'passwordHash is too long. Max length is <number>.',
  'TOTP <field> … is too long. Max length is <number>.',
  'role <name> is too long. Max length is <number>.',
  '<field> … is too long. Max length is <number>.',
  'externalUserId … is not unique. It is already used by another user.',
  'Role <name> does not exist.',
  'TenantId <name> for a user role does not exist in loginMethods.',
  'Invalid tenantId: <name> for a user role.',
  'Invalid tenantId: <name> for <word> recipe.',
  "LoginMethod '…' has no tenantId",
  'All tenants for a user must share the same database for <word> recipe.',
  'MFA must be enabled to import totp devices.',
  'period should be > 0 for a totp device.',
  'skew should be >= 0 for a totp device.',
  'At least one loginMethod is required.',
  'Account linking must be enabled to import multiple loginMethods.',
  'No two loginMethods can have isPrimary as true.',
  'Invalid recipeId for loginMethod. Pass one of emailpassword, thirdparty or, passwordless!',
  'Multitenancy must be enabled before importing users to a different tenant.',
  'timeJoined cannot be in future for a loginMethod.',
  'timeJoined cannot be < 0 for a loginMethod.',
  `Either ${BOTH} is required for an emailpassword recipe.`,
  'Either email or phoneNumber is required for a passwordless recipe.',
  'Invalid hashingAlgorithm for emailpassword recipe. Pass one of bcrypt, argon2 or, firebase_scrypt!',
  'Password hash is in invalid format',
  'Password hash is in invalid BCrypt format',
  'Password hash is in invalid Argon2 format',
  'Password hash is in invalid Firebase SCrypt format',
]

const SUPPORT = 'Please contact support'
const FAILED_TO = [
  'We tried to create the primary user for the userId <name>',
  'We tried to create the externalUserId mapping for the superTokenUserId <name>',
  'We tried to add the userId <name> to the tenantId <name>',
  'We tried to link the userId <name> to the primary userId <name>',
]
const BECAUSE = [
  `it doesn't exist. This should not happen. ${SUPPORT}.`,
  "it doesn't exist.",
  'it is not a primary user.',
  'it is already linked with another primary user.',
  'the account info is already associated with another primary user.',
  'another primary user with thirdPartyId … and thirdPartyUserId … already exists.',
  'another primary user with <word> … already exists.',
  'another user with thirdPartyId … and thirdPartyUserId … already exists.',
  'another user with <word> … already exists.',
]

/** What the core says, after a code, of an import that has failed. */
const IMPORT = [
  'A user with thirdPartyId … and thirdPartyUserId … already exists in <word> loginMethod.',
  'A user with <word> … already exists in <word> loginMethod.',
  'A user with externalId … already exists',
  'Unknown recipeId(s) […] for loginMethod.',
  'Role does not exist! You need to pre-create the role before assigning it to the user.',
  `Account linking feature is not enabled for this app. ${SUPPORT} to enable it.`,
  "Cannot use feature: <word>, because the license key is missing, or doesn't have this feature enabled.",
  'Tenant with the following connectionURIDomain, appId and tenantId combination not found: (…)',
  'App with the following connectionURIDomain and appId combination not found: (…)',
  'Email … is already verified for the user',
  'null email address was found for the userId <name> while verifying the email',
  ...FAILED_TO.flatMap((what) => BECAUSE.map((why) => `${what} but ${why}`)),
]

const KNOWN = [...VALIDATION, ...IMPORT].map(textForm)
const MAX_TEXT_LENGTH = 500

/**
 * What the core says of a record, or of a row: one text, or several separated by commas. Of what it
 * quotes only names of roles, tenants and users are left, and none that has a login or a secret of the
 * record in it. A text that is not known is cut: it may quote anything.
 */
export function withoutAccountData(text: string, record: unknown): string {
  const kept = [...loginsOf(record), ...secretsOf(record)].map(lowerCased)
  const mayBeTold = (name: string): boolean =>
    !kept.some((value) => value !== '' && name.toLowerCase().includes(value))
  return cutTexts(text, { forms: KNOWN, mayBeTold }).slice(0, MAX_TEXT_LENGTH)
}

function loginsOf(record: unknown): string[] {
  const methods = isRecord(record) ? record['loginMethods'] : undefined
  if (!Array.isArray(methods)) return []
  return methods
    .filter(isRecord)
    .flatMap((method) => [method['email'], method['phoneNumber'], method['thirdPartyUserId']])
    .filter((value) => typeof value === 'string')
}

const CUT = '…'
const NAME = '<name>'

/** Ids of tenants and users and names of roles; neither an e-mail address nor a phone number is one. */
const PLAIN_NAME = /^(?=.*[A-Za-z])[\w.:-]{1,64}$/

const RECIPE = '(?:an emailpassword|a thirdparty|a passwordless) recipe'

/** What may stand in a form, and which of it may be told. */
const HOLES: Readonly<Record<string, readonly [pattern: string, told: RegExp | undefined]>> = {
  [CUT]: ['[\\s\\S]*?', undefined],
  [NAME]: ['[\\s\\S]*?', PLAIN_NAME],
  '<field>': [
    '(?:externalUserId|email|phoneNumber|thirdParty(?:User)?Id|secretKey|deviceName)',
    /^/,
  ],
  '<word>': ['\\w{1,40}', /^/],
  '<number>': ['\\d{1,9}', /^/],
  '<type>': ['(?:array of )?(?:string|integer|boolean|object)', /^/],
  '<suffix>': [`(?: for (?:a user role|a totp device|a loginMethod|${RECIPE}))?\\.?`, /^/],
}
const HOLE = new RegExp(`(${Object.keys(HOLES).join('|')})`)

/** A form of a text of the core, at a place of a text. */
interface TextForm {
  readonly pattern: RegExp
  /** Literal parts and holes by turns. */
  readonly parts: readonly string[]
}

/** A text in its form ends where the next begins, or at the end. */
function textForm(form: string): TextForm {
  const parts = form.split(HOLE)
  const patterns = parts.map((part) => {
    const hole = HOLES[part]
    return hole === undefined ? escaped(part) : `(${hole[0]})`
  })
  return { pattern: new RegExp(`${patterns.join('')}(?=, |$)`, 'y'), parts }
}

/** How texts are cut. */
interface Cutting {
  readonly forms: readonly TextForm[]
  /** Asked for each name that is quoted; what is made like no name is never told. */
  readonly mayBeTold: (name: string) => boolean
}

/** Texts of these forms, separated by commas, without what they quote. What is of none is cut. */
function cutTexts(text: string, cutting: Cutting): string {
  const told: string[] = []
  let place = 0
  do {
    const found = matchAt(text, place, cutting)
    if (found === undefined) return [...told, CUT].join(', ')
    told.push(found.text)
    place = found.end + ', '.length
  } while (place < text.length)
  return told.join(', ')
}

function matchAt(text: string, place: number, { forms, mayBeTold }: Cutting) {
  for (const { pattern, parts } of forms) {
    pattern.lastIndex = place
    const match = pattern.exec(text)
    if (match === null) continue
    const quoted = match.slice(1)
    const told = parts.map((part) => {
      const hole = HOLES[part]
      if (hole === undefined) return part
      const value = quoted.shift() ?? ''
      const isCut = part === NAME && !mayBeTold(value)
      return hole[1]?.test(value) && !isCut ? value : CUT
    })
    return { text: told.join(''), end: place + match[0].length }
  }
  return undefined
}

const escaped = (literal: string): string => literal.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
