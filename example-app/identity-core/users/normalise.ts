import { trim } from './java-text.js'

export function normaliseEmail(email: string): string {
  return trim(email).toLowerCase()
}

/** What people write between digits. */
const PUNCTUATION = /[\s().\-/]/g
const E164 = /^\+[1-9]\d{6,14}$/

/**
 * An approximation: the core asks a library that knows each country's numbers. Here a number with
 * its country code loses its punctuation, anything else is kept as it is.
 */
export function normalisePhoneNumber(phoneNumber: string): string {
  const bare = phoneNumber.replace(PUNCTUATION, '')
  return E164.test(bare) ? bare : trim(phoneNumber)
}
