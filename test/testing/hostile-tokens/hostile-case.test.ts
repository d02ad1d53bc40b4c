import { expect, it } from 'vitest'
import { group, nameOf } from '../../../src/testing/hostile-tokens/hostile-case.js'

it('a group shares its reason and its status', () => {
  expect(group('why', [['a', 'x.y.z']])).toEqual([
    { name: 'a', why: 'why', authorization: 'Bearer x.y.z', expect: 401 },
  ])
  expect(group('why', [['a', 'x']], 403)[0]?.expect).toBe(403)
})

it('a name says which value stands where, and hides what varies', () => {
  expect(nameOf('exp', undefined)).toBe('exp missing')
  expect(nameOf('iss', ['http://127.0.0.1:4711'], 'http://127.0.0.1:4711')).toBe('iss ["(right)"]')
  expect(nameOf('kid', 'k'.repeat(500))).toHaveLength(100)
})
