import { type Finding, fieldOf, finding } from './user-finding.js'

/** Matches names of credentials by their end: `resetToken`, but not `tokenCount`. */
const CREDENTIAL = new RegExp(
  [
    '(?:pass(?:word|wd|phrase|code)|pwd|secret|token|credential)s?$',
    '(?:api|private|secret|access|signing|encryption)[-_ ]?keys?$',
    '(?:recovery|backup)[-_ ]?codes?$',
    '(?:pass(?:word|wd|phrase)?|pwd)[-_ ]?(?:hash|digest|salt|plain)$',
    '(?:totp|otp|mfa)[-_ ]?(?:seed|key)$',
    '^(?:pin|otp|salt|seed|bcrypt|argon2|scrypt)$',
  ].join('|'),
  'i',
)

/**
 * Warns of members at any depth that are named like credentials, because applications read metadata, and of
 * numbers that may have lost digits during parsing. Refuses lone surrogates, because the core stores question marks
 * for them. NUL is allowed here, because JSON escapes it.
 */
export function* metadataFindings(value: object, field = 'userMetadata'): Generator<Finding> {
  const isList = Array.isArray(value)
  for (const [name, member] of Object.entries(value)) {
    const place = fieldOf(field, isList ? Number(name) : name)
    if (!name.isWellFormed() || (typeof member === 'string' && !member.isWellFormed())) {
      yield finding('not_unicode', place)
    }
    if (!isList && mayBeCredential(member) && CREDENTIAL.test(name)) {
      yield finding('credential_in_metadata', place)
    }
    if (typeof member === 'number' && !isExact(member)) yield finding('inexact_number', place)
    if (typeof member === 'object' && member !== null) yield* metadataFindings(member, place)
  }
}

/** `JSON.parse` rounds integers that are not safe. A fraction keeps all digits that a double has. */
const isExact = (number: number): boolean =>
  Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number))

/** Excludes booleans, because `hasPassword: true` contains no password. */
const mayBeCredential = (value: unknown): boolean =>
  value !== null && value !== '' && typeof value !== 'boolean'
