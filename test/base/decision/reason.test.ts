import { expect, it } from 'vitest'
import { dependencyOf } from '../../../src/base/decision/dependency.js'
import { deny } from '../../../src/base/decision/reason.js'

it('no evidence is shared and frozen', () => {
  expect(deny('key_unknown').evidence).toBe(deny('token_malformed').evidence)
  expect(Object.isFrozen(deny('key_unknown').evidence)).toBe(true)
})

it('has a failure only where one is given', () => {
  const denied = { ok: false, reason: 'store_unavailable', evidence: {} }
  const failure = { dependency: dependencyOf('store', {}), message: 'it failed' }
  expect(deny('store_unavailable')).toStrictEqual(denied)
  expect(deny('store_unavailable', {}, failure)).toStrictEqual({ ...denied, failure })
})
