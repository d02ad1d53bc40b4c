import { describe, expect, it } from 'vitest'
import { findingsOf, GOOD_USER } from './users.js'

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
  findingsOf(user).filter((found) => /^(?:not_unicode|nul) /.test(found))

describe('a text of a record', () => {
  it('is one of more than twenty, all of which the core takes', () => {
    const paths = [...changedTexts(FULL, (text) => text)].map(([path]) => path)
    expect(findingsOf(FULL)).toEqual([])
    expect(paths.length).toBeGreaterThan(20)
    for (const name of ['externalUserId', 'userRoles[0].role', 'userRoles[0].tenantIds[1]']) {
      expect(paths).toContain(name)
    }
  })

  it.each(['\ud800', '\udc00\ud800', '\ud83d'])(
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
    expect(findingsOf({ ...GOOD_USER, userMetadata })).toEqual([
      'not_unicode userMetadata.list[0]["…"]',
    ])
  })

  it('may hold any character', () => {
    const text = 'ë😀مe\u0301\u{10fffd}\ufffd\ufeff\u0001\u007f\u0085'
    for (const [path, user] of changedTexts(FULL, (before) => `${before.slice(0, 14)}${text}`)) {
      expect([path, ownErrorsOf(user)]).toEqual([path, []])
    }
  })
})
