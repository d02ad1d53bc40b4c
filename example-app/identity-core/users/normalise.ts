import phone from 'google-libphonenumber'
import { trim } from './java-text.js'

export function normaliseEmail(email: string): string {
  return trim(email).toLowerCase()
}

const numbers = phone.PhoneNumberUtil.getInstance()

/** In E.164 when the core's library can parse the number, which drops a trunk zero. Otherwise trimmed. */
export function normalisePhoneNumber(phoneNumber: string): string {
  try {
    return numbers.format(numbers.parse(phoneNumber), phone.PhoneNumberFormat.E164)
  } catch {
    return trim(phoneNumber)
  }
}
