import { expect, it } from 'vitest'
import { recordIds, schemaLock, tokenIds } from '../../../../src/stores/postgres/sql/statements.js'

it('stays what it is: records outlive a release', () => {
  expect(recordIds('k', 'f')).toEqual({
    id: 'b1c8496182f6289240a0e9df69f26280',
    fingerprint: '71e5b3cbd0f4d05c03cfb7d344fb0a16',
    keyLock: '5106891031417524025',
  })
  expect(tokenIds('x')).toEqual({
    id: 'ff0924ef4efc803786ef6a411b7a3fc5',
    lock: '4468899733840592848',
  })
})

it('tells apart what it is for, and the schemas of a database', () => {
  const same = recordIds('x', 'x')
  const token = tokenIds('x')
  const locks = [same.keyLock, token.lock, schemaLock('sweep', 'service_auth')]
  expect(new Set(locks)).toHaveLength(locks.length)
  expect(token.id).not.toBe(same.id)
  expect(recordIds('x', 'x', 'other').keyLock).not.toBe(same.keyLock)
  expect(tokenIds('x', 'other').lock).not.toBe(token.lock)
  expect(recordIds('ab', 'c').fingerprint).not.toBe(recordIds('a', 'bc').fingerprint)
})
