import library from 'google-libphonenumber'
import { trimmed } from './normalise.js'
import { phonePlansFault } from './phone-plans.js'

/** ITU-T E.164: a plus sign and 2 to 15 digits, the first of which is not 0. */
const E164 = /^\+[1-9]\d{1,14}$/

/**
 * Returns a phone number in the form that the core stores and compares: parsed by libphonenumber without
 * a region and formatted as E.164. A number that cannot be parsed is only trimmed.
 *
 * @see SuperTokens core, `Utils.normalizeIfPhoneNumber`
 */
export function corePhoneNumber(phoneNumber: string): string {
  const text = trimmed(phoneNumber)
  const util = library.PhoneNumberUtil.getInstance()
  try {
    return util.format(util.parse(text), library.PhoneNumberFormat.E164)
  } catch {
    return text
  }
}

/** Whether the core stores the number in E.164, so that a message can be sent to it. */
export const isStoredInE164 = (phoneNumber: string): boolean =>
  E164.test(corePhoneNumber(phoneNumber))

let isChecked = false

/** @throws Error if the installed google-libphonenumber has other numbering plans than the core. */
export function assertPhonePlans(): void {
  if (isChecked) return
  const fault = phonePlansFault(corePhoneNumber)
  if (fault !== undefined) throw new Error(fault)
  isChecked = true
}
