import { isObject } from '../../base/options.js'
import type { ImportUser } from '../core/import-user.js'

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
const SPACES: ReadonlySet<number> = new Set([
  ...range(0x09, 0x0d),
  ...range(0x1c, 0x20),
  0x1680,
  ...range(0x2000, 0x2006),
  ...range(0x2008, 0x200a),
  0x2028,
  0x2029,
  0x205f,
  0x3000,
])

/** Whether the core considers the text blank. */
export function isBlank(text: string): boolean {
  for (let place = 0; place < text.length; place += 1) {
    if (!SPACES.has(text.charCodeAt(place))) return false
  }
  return true
}

/** Returns an e-mail address or a tenant id in the form that the core stores and compares. */
export const lowerCased = (text: string): string => trimmed(text).toLowerCase()

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

/** The tenant that every app has. */
export const PUBLIC_TENANT = 'public'

export const ONLY_PUBLIC: readonly string[] = [PUBLIC_TENANT]

/** Returns a tenant id in the form that the core stores. */
export const coreTenantId = (tenantId: string): string => lowerCased(tenantId)

export const coreTenantIds = (tenantIds: readonly string[] | undefined): readonly string[] =>
  tenantIds?.map(coreTenantId) ?? ONLY_PUBLIC

/** Matches a number as text: sign, digits before and after the point, power of ten. */
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/

/**
 * Returns the integer that the core reads from a number. Like Java, it discards the fraction and keeps the
 * lowest `bits`.
 */
export function coreInteger(value: number, bits: 32 | 64): number {
  const whole = Math.trunc(value)
  if (Number.isSafeInteger(whole) && (bits === 64 || whole === (whole | 0))) return whole
  return Number(BigInt.asIntN(bits, integerOf(String(value))))
}

/** Returns the integer that the JSON text of a number stands for, which may differ from a large number itself. */
function integerOf(text: string): bigint {
  const [, sign, whole = '', fraction = '', power = '0'] = NUMBER.exec(text) ?? []
  const digits = whole + fraction
  const places = whole.length + Number(power)
  const integer = BigInt(digits.slice(0, Math.max(0, places)).padEnd(places, '0') || '0')
  return sign === '-' ? -integer : integer
}

export const MAX_EXTERNAL_USER_ID_LENGTH = 128

/** Returns the external id that the core will store for a record; `undefined` if the core would not accept it. */
export function externalUserIdOf(record: unknown): string | undefined {
  if (!isObject(record) || !Object.hasOwn(record, 'externalUserId')) return undefined
  const given = record['externalUserId' satisfies keyof ImportUser]
  if (typeof given !== 'string' || isBlank(given)) return undefined
  const id = trimmed(given)
  return id === '' || given.length > MAX_EXTERNAL_USER_ID_LENGTH ? undefined : id
}
