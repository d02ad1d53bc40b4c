import phone from 'google-libphonenumber'
import { trim } from './java-text.js'

export function normaliseEmail(email: string): string {
  return trim(email).toLowerCase()
}

const numbers = phone.PhoneNumberUtil.getInstance()

/** What the core's library understands becomes E.164: without a trunk zero. Anything else stays. */
export function normalisePhoneNumber(phoneNumber: string): string {
  try {
    return numbers.format(numbers.parse(phoneNumber), phone.PhoneNumberFormat.E164)
  } catch {
    return trim(phoneNumber)
  }
}
