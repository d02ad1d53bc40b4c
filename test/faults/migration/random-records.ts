import phone from 'google-libphonenumber'
import type { Random } from '../../simulation/clock.js'

export interface RandomLogin {
  readonly recipeId: string
  readonly [member: string]: unknown
}

export interface RandomRecord {
  readonly externalUserId: string
  readonly loginMethods: readonly RandomLogin[]
  readonly [member: string]: unknown
}

export const HASHED_PASSWORD = 'pässwörd-€'
/** Its hash, with the lowest cost that bcrypt has. */
const HASH = '$2a$04$lbRiWQYKeBRzwDXMDTvlneUuDx9vUCmdTeMGfnTN3UnJDwjpyLJI6'

/** Of each plane that has characters; none is white space, a control or a letter with two cases. */
const RANGES = [
  [0x61, 0x7a],
  [0x5d0, 0x5ea],
  [0x0905, 0x0939],
  [0x4e00, 0x9fff],
  [0xac00, 0xd7a3],
  [0xe000, 0xf8ff],
  [0x10330, 0x1034a],
  [0x1f300, 0x1f5ff],
  [0x20000, 0x2a6df],
  [0x30000, 0x3134a],
  [0xe0100, 0xe01ef],
  [0xf0000, 0xffffd],
  [0x100000, 0x10fffd],
] as const

const COUNTRIES =
  'CH DE AT FR IT ES PT GB IE NL BE LU DK SE NO FI IS PL CZ SK HU RO BG GR HR SI RS UA RU TR IL EG MA DZ TN ZA NG KE GH ET US CA MX BR AR CL CO PE VE IN PK BD LK CN JP KR TW TH VN AU'.split(
    ' ',
  )

const numbers = phone.PhoneNumberUtil.getInstance()

/** Records of all login kinds, some of which no core takes or which share a login with another. */
export function randomRecords(random: Random, count: number): RandomRecord[] {
  const records: RandomRecord[] = []
  for (let index = 0; index < count; index++) {
    const fresh = freshRecord(random, index)
    const earlier = records[random.below(Math.max(index, 1))]
    records.push(earlier === undefined ? fresh : spoilt(random, fresh, earlier))
  }
  return records
}

function freshRecord(random: Random, index: number): RandomRecord {
  const externalUserId = `${wordOf(random)}-${index}`
  const email = `${wordOf(random)}.${index}@example.com`
  const password = { recipeId: 'emailpassword', email, ...HASHED }
  const provider = {
    recipeId: 'thirdparty',
    email,
    thirdPartyId: random.pick(['google', 'github', 'apple']),
    thirdPartyUserId: `${wordOf(random)}-${index}`,
  }
  const byEmail = { recipeId: 'passwordless', email }
  const byPhone = { recipeId: 'passwordless', phoneNumber: numberOf(random, index) }
  const isPrimary = true
  const loginMethods = random.pick<readonly RandomLogin[]>([
    [password],
    [{ recipeId: 'emailpassword', email, plainTextPassword: wordOf(random) }],
    [provider],
    [byEmail],
    [byPhone],
    [{ ...password, isPrimary }],
    [{ ...password, isPrimary }, provider],
    [provider, { ...byPhone, isPrimary }],
    [password, byPhone],
  ])
  return { externalUserId, loginMethods, ...random.pick(EXTRAS)(random) }
}

const HASHED = { passwordHash: HASH, hashingAlgorithm: 'bcrypt' }

const EXTRAS: readonly ((random: Random) => object)[] = [
  () => ({}),
  () => ({}),
  (random) => ({ userMetadata: { [wordOf(random)]: [wordOf(random), 1, { deep: '\0' }] } }),
  () => ({ userRoles: [{ role: 'member', tenantIds: ['public'] }] }),
  (random) => ({ totpDevices: [{ secretKey: 'JBSWY3DPEHPK3PXP', deviceName: wordOf(random) }] }),
]

/** In 100 of 1000 something is wrong with the record, or it has a login of an earlier one. */
function spoilt(random: Random, record: RandomRecord, earlier: RandomRecord): RandomRecord {
  const [first, ...others] = record.loginMethods
  const { loginMethods } = earlier
  switch (random.below(100)) {
    case 0:
    case 1:
      return { ...record, loginMethods }
    case 2:
      return { ...record, loginMethods: [...loginMethods.slice(0, 1), ...others] }
    case 3:
      return { ...record, loginMethods: loginMethods.map(otherSpelling) }
    case 4:
      return { ...record, totpDevices: [1, 2].map((skew) => ({ ...DEVICE, skew })) }
    case 5:
      return { ...record, userRoles: [ROLE, ROLE] }
    case 6:
      return { ...record, loginMethods: [{ ...first, recipeId: 'passwordless', email: 'a\0b' }] }
    case 7:
      return { ...record, totpDevices: [{ ...DEVICE, deviceName: 'a\ud800' }] }
    case 8:
      return { ...record, loginMethods: [] }
    case 9:
      return { ...record, userRoles: [{ ...ROLE, tenantIds: ['public', 'public'] }] }
    default:
      return record
  }
}

const DEVICE = { secretKey: 'JBSWY3DPEHPK3PXP', deviceName: 'phone' }
const ROLE = { role: 'member', tenantIds: ['public'] }

function otherSpelling(login: RandomLogin): RandomLogin {
  const { email, phoneNumber } = login
  return {
    ...login,
    ...(typeof email === 'string' && { email: ` ${email.toUpperCase()}` }),
    ...(typeof phoneNumber === 'string' && { phoneNumber: phoneNumber.replace(/^\+(.)/, '+ $1') }),
  }
}

function wordOf(random: Random): string {
  const characters = Array.from({ length: 1 + random.below(6) }, () => {
    const [from, to] = random.pick(RANGES)
    return String.fromCodePoint(from + random.below(to - from + 1))
  })
  return characters.join('')
}

/** An own number for each index, of one of the countries, in one of its spellings. */
function numberOf(random: Random, index: number): string {
  const country = COUNTRIES[index % COUNTRIES.length] ?? 'CH'
  const example = numbers.getExampleNumberForType(country, phone.PhoneNumberType.MOBILE)
  const plain = numbers.format(example, phone.PhoneNumberFormat.E164)
  const digits = String(Math.floor(index / COUNTRIES.length)).padStart(4, '0')
  const own = numbers.parse(`${plain.slice(0, -4)}${digits}`)
  const { E164, INTERNATIONAL, RFC3966 } = phone.PhoneNumberFormat
  return numbers.format(own, random.pick([E164, E164, INTERNATIONAL, RFC3966]))
}
