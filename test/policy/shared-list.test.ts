import { expect, test } from 'vitest'
import { sharedList } from '../../src/policy/shared-list.js'

test('a list is the same for the same texts, whatever becomes of what it was made of', () => {
  const texts = ['a', 'b']
  const list = sharedList(texts)
  texts.push('c')
  expect(list).toEqual(['a', 'b'])
  expect(sharedList(['a', 'b'])).toBe(list)
  expect(sharedList(['a,b'])).toEqual(['a,b'])
  expect(sharedList(['b', 'a'])).toEqual(['b', 'a'])
  expect(sharedList(['\ud800'])).not.toEqual(sharedList(['\\ud800']))
  expect(() => (list as string[]).push('c')).toThrow(TypeError)
})

test('it is right however many others there are', () => {
  for (let index = 0; index < 1000; index += 1) {
    expect(sharedList([`p${index}`])).toEqual([`p${index}`])
  }
  expect(sharedList(['a', 'b'])).toEqual(['a', 'b'])
})
