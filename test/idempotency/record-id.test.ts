import { describe, expect, it } from 'vitest'
import { deriveRecordId, operationOf } from '../../src/idempotency/fingerprint.js'

const SCOPE = { issuer: 'i', audience: 'a', caller: 'c', operation: 'o' }

describe('The name of a record', () => {
  it('is another for every part of its scope, wherever the parts are cut', () => {
    const names = [
      deriveRecordId(SCOPE, 'k'),
      deriveRecordId({ ...SCOPE, issuer: 'x' }, 'k'),
      deriveRecordId({ ...SCOPE, audience: 'x' }, 'k'),
      deriveRecordId({ ...SCOPE, caller: 'x' }, 'k'),
      deriveRecordId({ ...SCOPE, operation: 'x' }, 'k'),
      deriveRecordId(SCOPE, 'x'),
      deriveRecordId({ ...SCOPE, operation: 'ok' }, ''),
      deriveRecordId({ ...SCOPE, caller: 'co', operation: '' }, 'k'),
      deriveRecordId({ ...SCOPE, issuer: 'a', audience: 'i' }, 'k'),
    ]
    expect(new Set(names).size).toBe(names.length)
    for (const name of names) expect(name).toMatch(/^[\w-]{24}$/)
  })

  it('tells operations apart by method, mount path and pattern, of whatever type', () => {
    const operations = [
      operationOf('POST', '', '/a'),
      operationOf('PUT', '', '/a'),
      operationOf('POST', '/a', ''),
      operationOf('POST', '/v1', '/a'),
      operationOf('POST', '', '/x/'),
      operationOf('POST', '', /x/),
      operationOf('POST', '', ['/a']),
      operationOf('POST', '', ['/a', '/b']),
      operationOf('POST', '', ['/a,/b']),
      operationOf('POST', '', [['/a'], '/b']),
    ]
    expect(new Set(operations).size).toBe(operations.length)
    expect(operationOf('POST', '', /x/)).toBe(operationOf('POST', '', /x/))
  })
})
