import { expect, it } from 'vitest'
import { algorithmCases } from '../../../src/testing/hostile-tokens/hostile-tokens.js'
import { countReasons, judgeCases } from '../reasons.js'

it('each is refused, for the reason that it was made for', async () => {
  const judged = await judgeCases(algorithmCases)
  expect(new Set(judged.map(({ status }) => status))).toEqual(new Set([401]))
  expect(countReasons(judged)).toEqual({
    algorithm_not_allowed: 33,
    signature_invalid: 5,
    token_malformed: 4,
  })
})
