import { expect, it } from 'vitest'
import { signatureCases } from '../../../src/testing/hostile-tokens/hostile-tokens.js'
import { countReasons, judgeCases } from '../reasons.js'

it('each is refused, for the reason that it was made for', async () => {
  const judged = await judgeCases(signatureCases)
  expect(new Set(judged.map(({ status }) => status))).toEqual(new Set([401]))
  expect(countReasons(judged)).toEqual({
    algorithm_not_allowed: 1,
    signature_invalid: 22,
    token_malformed: 1,
  })
})
