import fc from 'fast-check'
import { expect, it } from 'vitest'
import { repeatedMemberIn } from '../../../src/migration/source/repeated-member.js'

it.each([
  ['{"a":1,"a":2}', 'a'],
  ['{"a":1,"\\u0061":2}', 'a'],
  ['{"a\\"":1,"b":"\\\\","a\\"":2}', '["…"]'],
  [' { "a" : [ 1 , { "b" : { } , "b" : [ ] } ] } ', 'a[1].b'],
  ['{"a":{"b":1},"c":{"b":1,"d":[[],[{"e":"x","e":"x"}]]}}', 'c.d[1][0].e'],
  ['{"__proto__":1,"__proto__":2}', '__proto__'],
  ['{"ann@example.com":1,"ann@example.com":2}', '["…"]'],
])('%s has a member twice', (json, path) => {
  expect(() => JSON.parse(json)).not.toThrow()
  expect(repeatedMemberIn(json)).toBe(path)
})

it.each([
  '{}',
  '{"a":"a","b":["a","a",{"a":1},{"a":1}]}',
  '{"a":{"a":{"a":"{\\"a\\":1,\\"a\\":2}"}}}',
  '{"a":1,"A":2,"":3,"é":4,"e\\u0301":5}',
])('%s has no member twice', (json) => {
  expect(repeatedMemberIn(json)).toBeUndefined()
})

it('shows the beginning of a long path', () => {
  const json = `${'['.repeat(400_000)}{"a":1,"a":2}${']'.repeat(400_000)}`
  expect(repeatedMemberIn(json)).toBe(`${'[0]'.repeat(20)}…a`)
})

it('finds nothing in any JSON without such a member, and the member wherever one is added', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.integer({ min: 0, max: 2 }), (value, indent) => {
      const json = JSON.stringify(value, null, indent)
      expect(repeatedMemberIn(json)).toBeUndefined()
      expect(repeatedMemberIn(`{"a":${json},"a":${json}}`)).toBe('a')
      expect(repeatedMemberIn(`[${json},{"b":${json},"b":1}]`)).toBe('[1].b')
    }),
  )
})
