import { trimmed } from './core-text.js'

/** ITU-T E.164: a plus sign and at most 15 digits, the first of which is no 0. */
const E164 = /^\+[1-9]\d{1,14}$/

/** What the core strips from a number that it understands. */
const PUNCTUATION = /[\s().\-/]/g

export const isE164 = (phoneNumber: string): boolean => E164.test(trimmed(phoneNumber))

/**
 * As the core keeps a number in E.164, and nearly so one with punctuation. The core knows the
 * numbering plan of each country, which is not repeated here.
 */
export function corePhoneNumber(phoneNumber: string): string {
  const text = trimmed(phoneNumber)
  if (!text.startsWith('+')) return text
  const bare = text.replace(PUNCTUATION, '')
  return E164.test(bare) ? bare : text
}
