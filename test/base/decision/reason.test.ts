import { expect, it } from 'vitest'
import { allow, deny } from '../../../src/base/decision/reason.js'

it('a decision is a value or a reason', () => {
  expect(allow(1)).toEqual({ ok: true, value: 1 })
  const denial = deny('token_expired', { claim: 'exp' })
  expect(denial).toEqual({ ok: false, reason: 'token_expired', evidence: { claim: 'exp' } })
})

it('no evidence is shared and frozen', () => {
  expect(deny('key_unknown').evidence).toBe(deny('token_malformed').evidence)
  expect(Object.isFrozen(deny('key_unknown').evidence)).toBe(true)
})
