import phone from 'google-libphonenumber'
import { trim } from './input.js'

export function normaliseEmail(email: string): string {
  return trim(email).toLowerCase()
}

const numbers = phone.PhoneNumberUtil.getInstance()

/**
 * Returns E.164 if the core's library can parse the number, which drops a trunk zero; otherwise
 * trims it.
 */
export function normalisePhoneNumber(phoneNumber: string): string {
  try {
    return numbers.format(numbers.parse(phoneNumber), phone.PhoneNumberFormat.E164)
  } catch {
    return trim(phoneNumber)
  }
}
