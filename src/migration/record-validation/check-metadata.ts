import { type FindingCollector, fieldOf, NOT_UNICODE } from './user-finding.js'

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
export function checkMetadata(value: object, field: string, findings: FindingCollector): void {
  const isList = Array.isArray(value)
  for (const [name, member] of Object.entries(value)) {
    const place = fieldOf(field, isList ? Number(name) : name)
    if (!name.isWellFormed() || (typeof member === 'string' && !member.isWellFormed())) {
      findings.refuse('not_unicode', place, NOT_UNICODE)
    }
    if (!isList && mayBeCredential(member) && CREDENTIAL.test(name)) {
      findings.warn('credential_in_metadata', place, CREDENTIAL_IN_METADATA)
    }
    if (typeof member === 'number' && !isExact(member)) {
      findings.warn('inexact_number', place, INEXACT_NUMBER)
    }
    if (typeof member === 'object' && member !== null) checkMetadata(member, place, findings)
  }
}

const CREDENTIAL_IN_METADATA = 'Named like a credential: metadata is no place for one.'

const INEXACT_NUMBER =
  'Above 9007199254740991 JavaScript rounds an integer when it reads one: write the number as a text.'

/** `JSON.parse` rounds integers that are not safe. A fraction keeps all digits that a double has. */
const isExact = (number: number): boolean =>
  Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number))

/** Excludes booleans, because `hasPassword: true` contains no password. */
const mayBeCredential = (value: unknown): boolean =>
  value !== null && value !== '' && typeof value !== 'boolean'
