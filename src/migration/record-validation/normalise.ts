import library from 'google-libphonenumber'
import { isObject } from '../../base/options.js'
import type { ImportUser } from '../core/import-user.js'
import { phonePlansFault } from './phone-plans.js'

// Values of a record in the form in which the core stores and compares them.

/** The core's `trim` removes characters up to this one: the space and the control characters. */
const LAST_TRIMMED = 0x20

/** Trims like the core: removes control characters too, but, unlike `String.prototype.trim`, no other spaces. */
export function trimmed(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && text.charCodeAt(start) <= LAST_TRIMMED) start += 1
  while (end > start && text.charCodeAt(end - 1) <= LAST_TRIMMED) end -= 1
  return start === 0 && end === text.length ? text : text.slice(start, end)
}

/** The white space of the core, which excludes the non-breaking spaces. */
const SPACES = /^[^\S\u00a0\u2007\u202f\ufeff]*$/

/** Whether the core considers the text blank, or would store nothing of it. */
export const isBlank = (text: string): boolean => SPACES.test(trimmed(text))

/** Returns an e-mail address or a tenant id in the form that the core stores and compares. */
export const lowerCased = (text: string): string => trimmed(text).toLowerCase()

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

/** The tenant that every app has. */
export const PUBLIC_TENANT = 'public'

const ONLY_PUBLIC: readonly string[] = [PUBLIC_TENANT]

/** Returns a tenant id in the form that the core stores. */
export const coreTenantId = (tenantId: string): string => lowerCased(tenantId)

export const coreTenantIds = (tenantIds: readonly string[] | undefined): readonly string[] =>
  tenantIds?.map(coreTenantId) ?? ONLY_PUBLIC

export const MAX_EXTERNAL_USER_ID_LENGTH = 128

/** Returns the external id that the core will store for a record; `undefined` if the core would not accept it. */
export function externalUserIdOf(record: unknown): string | undefined {
  if (!isObject(record) || !Object.hasOwn(record, 'externalUserId')) return undefined
  const given = record['externalUserId' satisfies keyof ImportUser]
  if (typeof given !== 'string' || isBlank(given)) return undefined
  return given.length > MAX_EXTERNAL_USER_ID_LENGTH ? undefined : trimmed(given)
}
