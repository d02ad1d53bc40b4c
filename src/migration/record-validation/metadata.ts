import type { Findings } from './collect-findings.js'
import { fieldOf } from './field.js'
import { LEVEL_OF_MEMBERS, MAX_LEVELS, TOO_DEEP } from './nesting-limit.js'
import type { JsonObject } from './read-field.js'
import { checkUnicode } from './stored-text.js'

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
 * Warns of members at any depth that are named like credentials, because applications read metadata, and
 * of numbers that may have lost digits during parsing. Refuses values that are nested too deeply, and lone
 * surrogates. NUL is allowed here, because JSON escapes it.
 */
export function checkMetadata(metadata: JsonObject, findings: Findings): void {
  if (checkInside({ value: metadata, field: 'userMetadata', level: LEVEL_OF_MEMBERS }, findings))
    return
  findings.refuse('too_deep', 'userMetadata', TOO_DEEP)
}

interface Part {
  readonly value: object
  readonly field: string
  readonly level: number
}

/** Returns `false` if it stopped at the maximum depth. */
function checkInside({ value, field, level }: Part, findings: Findings): boolean {
  if (level > MAX_LEVELS) return false
  const isList = Array.isArray(value)
  for (const name of Object.keys(value)) {
    const member: unknown = (value as JsonObject)[name]
    const place = isList ? `${field}[${name}]` : fieldOf(field, name)
    if (!isList) checkUnicode(name, place, findings)
    if (typeof member === 'string') checkUnicode(member, place, findings)
    if (!isList && isSaid(member) && CREDENTIAL.test(name)) {
      findings.warn('credential_in_metadata', place, MESSAGE)
    }
    if (typeof member === 'number' && !isExact(member)) {
      findings.warn('inexact_number', place, INEXACT)
    }
    if (typeof member !== 'object' || member === null) continue
    if (!checkInside({ value: member, field: place, level: level + 1 }, findings)) return false
  }
  return true
}

const MESSAGE = 'Named like a credential: metadata is no place for one.'

const INEXACT =
  'Above 9007199254740991 JavaScript rounds an integer when it reads one: write the number as a text.'

/** `JSON.parse` rounds integers that are not safe. A fraction keeps all digits that a double has. */
const isExact = (number: number): boolean =>
  Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number))

/** Excludes booleans, because `hasPassword: true` contains no password. */
const isSaid = (value: unknown): boolean =>
  value !== null && value !== '' && typeof value !== 'boolean'
