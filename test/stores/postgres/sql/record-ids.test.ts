import { expect, it } from 'vitest'
import { recordIds, schemaLock, tokenIds } from '../../../../src/stores/postgres/sql/record-ids.js'

const UUID = /^[0-9a-f]{32}$/
const LEAST = -(2n ** 63n)
const MOST = 2n ** 63n - 1n

it('stays what it is: records outlive a release', () => {
  expect(recordIds('key', 'fingerprint')).toEqual({
    id: expect.stringMatching(UUID),
    fingerprint: expect.stringMatching(/^[0-9a-f]{32}$/),
    keyLock: expect.stringMatching(/^-?\d+$/),
  })
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

it('tells apart what it is for', () => {
  const same = recordIds('x', 'x')
  const token = tokenIds('x')
  const locks = [same.keyLock, token.lock, schemaLock('sweep', 'service_auth')]
  expect(new Set(locks)).toHaveLength(locks.length)
  expect(token.id).not.toBe(same.id)
  expect(recordIds('ab', 'c').fingerprint).not.toBe(recordIds('a', 'bc').fingerprint)
})

it('locks for each schema of a database on its own', () => {
  const one = recordIds('key', 'fingerprint', 'one')
  const other = recordIds('key', 'fingerprint', 'other')
  expect(one.keyLock).not.toBe(other.keyLock)
  expect(tokenIds('id', 'one').lock).not.toBe(tokenIds('id', 'other').lock)
})

it('makes locks that Postgres takes', () => {
  for (let each = 0; each < 1000; each++) {
    const lock = BigInt(recordIds(String(each), 'fingerprint').keyLock)
    expect(lock >= LEAST && lock <= MOST).toBe(true)
  }
})
