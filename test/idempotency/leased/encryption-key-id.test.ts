import { describe, expect, it } from 'vitest'
import {
  KEY_ID_FORM,
  keyIdOf,
  sealedOwner,
} from '../../../src/idempotency/leased/encryption-key-id.js'

describe('the owner of a run whose result will be encrypted', () => {
  it.each(['2024-06', 'a', 'A.b_c-9', 'x'.repeat(64)])('tells its key id, %s', (keyId) => {
    expect(KEY_ID_FORM.test(keyId)).toBe(true)
    for (const owner of ['6f2c', '', 'jwe:other:6f2c', 'a\nb']) {
      expect(keyIdOf(sealedOwner(keyId, owner))).toBe(keyId)
    }
  })
})

it.each(['', 'a:b', 'a b', 'x'.repeat(65), 'á', 'a\n'])('%j is no key id', (text) => {
  expect(KEY_ID_FORM.test(text)).toBe(false)
})

it.each([
  '',
  '6f2c',
  'jwe:',
  'jwe::6f2c',
  'jwe:key',
  'JWE:key:6f2c',
  ' jwe:key:6f2c',
  `jwe:${'x'.repeat(65)}:6f2c`,
])('any other owner, such as %j, tells none', (owner) => expect(keyIdOf(owner)).toBeUndefined())
