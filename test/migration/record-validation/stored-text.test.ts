import { describe, expect, it } from 'vitest'
import { validateUser } from '../../../src/migration/record-validation/validate-user.js'
import { GOOD_USER } from './users.js'

type Json = { [name: string]: Json } | Json[] | string | number | boolean | null

/** A user with something in each text that the core reads. */
const FULL: Json = {
  ...structuredClone(GOOD_USER as unknown as { [name: string]: Json }),
  loginMethods: [
    ...structuredClone(GOOD_USER.loginMethods as unknown as Json[]),
    {
      recipeId: 'emailpassword',
      email: 'bob@example.com',
      plainTextPassword: 'the-plain-text',
      tenantIds: ['known-tenant'],
    },
  ],
}

const errorsOf = (user: unknown): string[] => {
  const result = validateUser(user)
  return result.ok ? [] : result.errors.map(({ code, field }) => `${code} ${field}`)
}

/** Paths of the texts in a value, each with a copy of the whole in which the text is changed. */
function* changedTexts(
  value: Json,
  change: (text: string) => string,
  path = '',
): Generator<readonly [path: string, changed: Json]> {
  // Another recipe is refused as an unknown one, whatever its characters.
  if (typeof value === 'string' && !path.endsWith('.recipeId')) yield [path, change(value)]
  if (typeof value !== 'object' || value === null) return
  const isList = Array.isArray(value)
  for (const [name, member] of Object.entries(value)) {
    const place = isList ? `${path}[${name}]` : `${path}.${name}`.replace(/^\./, '')
    for (const [inner, changed] of changedTexts(member, change, place)) {
      const copy = isList ? [...value] : { ...value }
      yield [inner, Object.assign(copy, { [name]: changed })]
    }
  }
}

/** A changed tenant, recipe or hash has other errors as well. */
const ownErrorsOf = (user: unknown): string[] =>
  errorsOf(user).filter((error) => /^(?:not_unicode|nul|duplicate) /.test(error))

describe('a text of a record', () => {
  it('is one of more than twenty, all of which the core takes', () => {
    const paths = [...changedTexts(FULL, (text) => text)].map(([path]) => path)
    expect(errorsOf(FULL)).toEqual([])
    expect(paths.length).toBeGreaterThan(20)
    for (const name of ['externalUserId', 'userRoles[0].role', 'userRoles[0].tenantIds[1]']) {
      expect(paths).toContain(name)
    }
  })

  it.each(['\ud800', '\udfff', '\udc00\ud800', '\ud83d'])(
    'is refused with half a surrogate pair, by its name: %j',
    (half) => {
      for (const [path, user] of changedTexts(FULL, (text) => `${text.slice(0, 4)}${half}x`)) {
        expect(ownErrorsOf(user)).toEqual([`not_unicode ${path}`])
      }
    },
  )

  it('is refused with NUL where the core stores it as text, by its name', () => {
    for (const [path, user] of changedTexts(FULL, (text) => `${text.slice(0, 8)}\0x`)) {
      const isStored = !path.startsWith('userMetadata') && !path.endsWith('plainTextPassword')
      expect([path, ownErrorsOf(user)]).toEqual([path, isStored ? [`nul ${path}`] : []])
    }
  })

  it('of metadata is refused with half a surrogate pair in a name, at any depth', () => {
    const userMetadata = { list: [{ 'key\ud800': 'a\0b' }] }
    expect(errorsOf({ ...GOOD_USER, userMetadata })).toEqual([
      'not_unicode userMetadata.list[0]["…"]',
    ])
  })

  it.each(['ë€', '😀', 'مرحبا', 'e\u0301', '\u{10fffd}', '\ufffd', '\ufeff', '\u0001\u007f\u0085'])(
    'may hold any character: %j',
    (text) => {
      for (const [path, user] of changedTexts(FULL, (before) => `${before.slice(0, 14)}${text}`)) {
        expect([path, ownErrorsOf(user)]).toEqual([path, []])
      }
    },
  )

  it('quotes nothing of the record in its message', () => {
    const result = validateUser({ ...GOOD_USER, externalUserId: 'ann@example.com\ud800' })
    expect(JSON.stringify(result)).toContain('not_unicode')
    expect(JSON.stringify(result)).not.toContain('ann@example.com')
  })
})

describe('a record that names a thing twice is refused', () => {
  const [PUBLIC, TENANT] = ['public', 'known-tenant']
  const ofRoles = (...userRoles: { role: string; tenantIds: string[] }[]) =>
    errorsOf({ ...GOOD_USER, userRoles })
  const ofDevices = (...names: string[]) =>
    errorsOf({
      ...GOOD_USER,
      totpDevices: names.map((deviceName) => ({ secretKey: 'some-totp-key', deviceName })),
    })

  it.each([
    [['phone', 'phone'], ['duplicate totpDevices[1].deviceName']],
    [['phone', ' phone\n'], ['duplicate totpDevices[1].deviceName']],
    [['a', 'b', 'a', 'a'], [2, 3].map((index) => `duplicate totpDevices[${index}].deviceName`)],
    [['phone', 'Phone'], []],
    [['é', 'e\u0301'], []],
    [['a', '\u00a0a'], []],
  ])('as TOTP devices of one name: %j', (names, errors) => {
    expect(ofDevices(...names)).toEqual(errors)
  })

  it('as a role in a tenant, which the core trims and writes in small letters', () => {
    const role = 'known-role'
    expect(ofRoles({ role, tenantIds: [PUBLIC, PUBLIC] })).toEqual([
      'duplicate userRoles[0].tenantIds[1]',
    ])
    expect(
      ofRoles({ role, tenantIds: [TENANT] }, { role: ` ${role}\t`, tenantIds: [' KNOWN-Tenant'] }),
    ).toEqual(['duplicate userRoles[1].tenantIds[0]'])
    expect(ofRoles({ role, tenantIds: [PUBLIC] }, { role, tenantIds: ['Public'] })).toEqual([
      'duplicate userRoles[1].tenantIds[0]',
    ])
  })

  it('but not as a role in two tenants, or as two roles in one', () => {
    const role = 'known-role'
    expect(ofRoles({ role, tenantIds: [PUBLIC, TENANT] })).toEqual([])
    expect(ofRoles({ role, tenantIds: [PUBLIC] }, { role, tenantIds: [TENANT] })).toEqual([])
    expect(
      ofRoles({ role, tenantIds: [PUBLIC] }, { role: 'Known-role', tenantIds: [PUBLIC] }),
    ).toEqual([])
    expect(ofRoles({ role, tenantIds: [] }, { role, tenantIds: [] })).toEqual([])
  })

  it('but not as a tenant of a login method, which the core adds once', () => {
    const [method] = GOOD_USER.loginMethods
    const loginMethods = [{ ...method, tenantIds: [PUBLIC, PUBLIC] }]
    expect(errorsOf({ externalUserId: 'a', loginMethods })).toEqual([])
  })
})
