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

test('it takes nothing from a prototype that somebody has changed', () => {
  const prototype = Array.prototype as { toJSON?: () => string }
  prototype.toJSON = () => 'list'
  try {
    expect(sharedList(['admin'])).toEqual(['admin'])
    expect(sharedList(['read'])).toEqual(['read'])
  } finally {
    delete prototype.toJSON
  }
})

test('it is right however many others there are', () => {
  for (let index = 0; index < 1000; index += 1) {
    expect(sharedList([`p${index}`])).toEqual([`p${index}`])
  }
  expect(sharedList(['a', 'b'])).toEqual(['a', 'b'])
})
