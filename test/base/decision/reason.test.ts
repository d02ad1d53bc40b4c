import { expect, it } from 'vitest'
import { dependencyOf } from '../../../src/base/decision/dependency.js'
import { allow, deny } from '../../../src/base/decision/reason.js'

it('a decision is a value or a reason', () => {
  expect(allow(1)).toEqual({ ok: true, value: 1 })
  const denial = deny('token_expired', { claim: 'exp' })
  expect(denial).toStrictEqual({ ok: false, reason: 'token_expired', evidence: { claim: 'exp' } })
})

it('an undecided request names the dependency that failed', () => {
  const failure = { dependency: dependencyOf('store', {}), message: 'it failed' }
  expect(deny('store_unavailable', undefined, failure)).toStrictEqual({
    ok: false,
    reason: 'store_unavailable',
    evidence: {},
    failure,
  })
})

it('no evidence is shared and frozen', () => {
  expect(deny('key_unknown').evidence).toBe(deny('token_malformed').evidence)
  expect(Object.isFrozen(deny('key_unknown').evidence)).toBe(true)
})
