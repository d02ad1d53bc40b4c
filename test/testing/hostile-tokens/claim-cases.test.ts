import { expect, it } from 'vitest'
import { claimCases, timeCases } from '../../../src/testing/hostile-tokens/claim-cases.js'
import { countReasons, judgeCases } from '../reasons.js'

it('each time is refused for its claim', async () => {
  const judged = await judgeCases(timeCases)
  expect(new Set(judged.map(({ status }) => status))).toEqual(new Set([401]))
  expect(countReasons(judged)).toEqual({
    claim_invalid: 28,
    claim_missing: 1,
    token_expired: 5,
    token_lifetime_too_long: 6,
    token_not_yet_valid: 6,
  })
  for (const { name, reason, claim } of judged) {
    // What lives for too long has an `exp` too far ahead, or an `iat` too long ago.
    if (reason !== 'token_lifetime_too_long') expect(claim).toBe(name.split(' ')[0])
  }
})

it('each other claim is refused for itself, and callers with the 403', async () => {
  const judged = await judgeCases(claimCases)
  expect(countReasons(judged)).toEqual({
    caller_not_approved: 19,
    claim_invalid: 143,
    claim_missing: 10,
    confirmation_unsupported: 7,
  })
  for (const { name, status, reason, claim } of judged) {
    expect(`${name}: ${status}`).toBe(`${name}: ${reason === 'caller_not_approved' ? 403 : 401}`)
    if (/^(iss|aud|sub|source|token_type|permissions|jti|cnf) /.test(name)) {
      expect(`${name}: ${claim}`).toBe(`${name}: ${name.split(' ')[0]}`)
    }
  }
})
