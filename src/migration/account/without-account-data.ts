import { isRecord } from '../../base/options.js'
import { secretsOf } from '../core/cut-secrets.js'
import { lowerCased } from '../record-validation/stored-form.js'
import {
  USER_WARNING_CODES,
  type UserErrorCode,
  type UserFinding,
} from '../record-validation/user-finding.js'

const BOTH = '(passwordHash, hashingAlgorithm) or plainTextPassword'

/** The messages of the core's validation, and of a call that it cannot read. */
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

/** The texts that follow a code in the error of a failed import. */
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

const MAX_TEXT_LENGTH = 500

/**
 * Removes account data from the core's message on a record or a row: one text, or several separated by
 * commas. Of the quoted values, only names of roles, tenants and users are kept, unless they contain a login
 * or a secret of the record. An unknown text is removed, because it may quote anything.
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

/** Matches ids of tenants and users and names of roles, but neither e-mail addresses nor phone numbers. */
const PLAIN_NAME = /^(?=.*[A-Za-z])[\w.:-]{1,64}$/

const RECIPE = '(?:an emailpassword|a thirdparty|a passwordless) recipe'

/** The placeholders of a form, each with its pattern and the values that may be kept. */
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

/** A compiled form of a text of the core, which is matched at a position of a message. */
interface TextForm {
  readonly pattern: RegExp
  /** Literal parts and placeholders, alternating. */
  readonly parts: readonly string[]
}

/** Compiles a form. A text must end before the next one, or at the end of the message. */
function textForm(form: string): TextForm {
  const parts = form.split(HOLE)
  const patterns = parts.map((part) => {
    const hole = HOLES[part]
    return hole === undefined ? part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&') : `(${hole[0]})`
  })
  return { pattern: new RegExp(`${patterns.join('')}(?=, |$)`, 'y'), parts }
}

const KNOWN = [...VALIDATION, ...IMPORT].map(textForm)

interface Cutting {
  readonly forms: readonly TextForm[]
  /** Decides whether a quoted name is kept. A value that is not a `PLAIN_NAME` is never kept. */
  readonly mayBeTold: (name: string) => boolean
}

/** Returns the texts that match a form, separated by commas, without quoted values. Cuts at the first other text. */
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

const OWN_ERROR_CODES: readonly UserErrorCode[] = ['not_unicode', 'nul', 'duplicate']
const OWN_CODES: ReadonlySet<string> = new Set([...OWN_ERROR_CODES, ...USER_WARNING_CODES])

/** Returns the message of a finding, without account data. Only messages of the core can quote such data. */
export const findingText = ({ code, message }: UserFinding, record: unknown): string =>
  OWN_CODES.has(code) ? message : withoutAccountData(message, record)
