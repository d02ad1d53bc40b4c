import { createRequire } from 'node:module'
import { trimmed } from './core-trim.js'

/** ITU-T E.164: a plus sign and 2 to 15 digits, the first of which is not 0. */
const E164 = /^\+[1-9]\d{1,14}$/

const require = createRequire(import.meta.url)
let normalize: ((phoneNumber: string) => string) | undefined

/**
 * Returns a phone number in the form that the core stores and compares: parsed by libphonenumber without
 * a region and formatted as E.164. A number that cannot be parsed is only trimmed.
 *
 * @see SuperTokens core, `Utils.normalizeIfPhoneNumber`
 */
export function corePhoneNumber(phoneNumber: string): string {
  const text = trimmed(phoneNumber)
  normalize ??= loadNormalizer()
  try {
    return normalize(text)
  } catch {
    return text
  }
}

/** Whether the core stores the number in E.164, so that a message can be sent to it. */
export const isStoredInE164 = (phoneNumber: string): boolean =>
  E164.test(corePhoneNumber(phoneNumber))

/** Called for the first phone number, because loading takes about 0.1 s and 30 MB. */
function loadNormalizer(): (phoneNumber: string) => string {
  const library: typeof import('google-libphonenumber') = require('google-libphonenumber')
  const util = library.PhoneNumberUtil.getInstance()
  const { E164: format } = library.PhoneNumberFormat
  return (phoneNumber) => util.format(util.parse(phoneNumber), format)
}
