import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { effectIdOf } from '../../../src/stores/postgres/postgres-store.js'
import { anyCharacter } from '../../base/any-character.js'

const part = fc.string({ unit: anyCharacter, maxLength: 6 })

it('an effect id is SHA-256 but for the version and the variant, today as tomorrow', () => {
  const bytes = createHash('sha256').update('6:effect6:record4:mail').digest('hex')
  const id = effectIdOf('record', 'mail')
  expect(id).toBe('e7d0a8dc-e30b-863f-830c-d7115d183533')
  expect(id.replaceAll('-', '').replace(/^(.{12}).(.{3})./, '$1?$2?')).toBe(
    bytes.slice(0, 32).replace(/^(.{12}).(.{3})./, '$1?$2?'),
  )
})

it('two effects have one id only if they are the same of the same record', () => {
  const two = fc.tuple(part, part)
  fc.assert(
    fc.property(two, two, (one, other) => {
      const same = JSON.stringify(one) === JSON.stringify(other)
      expect(effectIdOf(...one) === effectIdOf(...other)).toBe(same)
    }),
  )
  const odd = ['\ud800', '\udfff', '\ufffd', '\ud800\udc00', 'a', '1:a', '']
  const ids = odd.flatMap((name) => [effectIdOf('r', name), effectIdOf(`r${name}`, 'x')])
  expect(new Set(ids).size).toBe(2 * odd.length)
})
