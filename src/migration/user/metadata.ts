import { isRecord } from '../../base/options.js'
import { fieldOf } from './field.js'
import type { Findings } from './findings.js'
import type { JsonObject } from './member.js'

/** How names of credentials end: `resetToken`, but not `tokenCount`. */
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

/** Warns of members at any depth that are named like credentials: applications read metadata. */
export function warnOfCredentials(metadata: JsonObject, findings: Findings): void {
  warnInside(metadata, 'userMetadata', findings)
}

/** The depth of a record is bounded before. */
function warnInside(value: unknown, field: string, findings: Findings): void {
  if (Array.isArray(value)) {
    for (const [index, element] of value.entries()) {
      if (typeof element === 'object') warnInside(element, `${field}[${index}]`, findings)
    }
    return
  }
  if (!isRecord(value)) return
  for (const name of Object.keys(value)) {
    const member = value[name]
    if (isSaid(member) && CREDENTIAL.test(name)) {
      findings.warn('credential_in_metadata', fieldOf(field, name), MESSAGE)
    }
    if (typeof member === 'object') warnInside(member, fieldOf(field, name), findings)
  }
}

const MESSAGE = 'Named like a credential: metadata is no place for one.'

/** `hasPassword: true` tells no password. */
const isSaid = (value: unknown): boolean =>
  value !== null && value !== '' && typeof value !== 'boolean'
