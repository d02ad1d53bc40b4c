import { createRequire } from 'node:module'
import { trimmed } from './core-trim.js'

/** ITU-T E.164: a plus sign and at most 15 digits, the first of which is no 0. */
const E164 = /^\+[1-9]\d{1,14}$/

const require = createRequire(import.meta.url)
let normalize: ((phoneNumber: string) => string) | undefined

/**
 * A phone number as the core stores and compares it: parsed by libphonenumber without a region and
 * written in E.164. A number that cannot be parsed is only trimmed.
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

/** Loaded at the first phone number: it takes about 0.1 s and 30 MB, which most commands never need. */
function loadNormalizer(): (phoneNumber: string) => string {
  const library: typeof import('google-libphonenumber') = require('google-libphonenumber')
  const util = library.PhoneNumberUtil.getInstance()
  const { E164: format } = library.PhoneNumberFormat
  return (phoneNumber) => util.format(util.parse(phoneNumber), format)
}
