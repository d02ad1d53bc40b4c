import { expect, it } from 'vitest'
import { formCases } from '../../../src/testing/hostile-tokens/form-cases.js'
import { countReasons, judgeCases } from '../reasons.js'

it('each is refused, for the reason that it was made for', async () => {
  const judged = await judgeCases(formCases)
  expect(new Set(judged.map(({ status }) => status))).toEqual(new Set([401]))
  expect(countReasons(judged)).toEqual({
    algorithm_not_allowed: 1,
    claim_missing: 1,
    signature_invalid: 1,
    token_malformed: 61,
    token_too_long: 4,
  })
})
