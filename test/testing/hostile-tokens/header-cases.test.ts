import { expect, it } from 'vitest'
import { headerCases } from '../../../src/testing/hostile-tokens/header-cases.js'
import { countReasons, judgeCases } from '../reasons.js'

it('each is refused, for the reason that it was made for', async () => {
  const judged = await judgeCases(headerCases)
  expect(new Set(judged.map(({ status }) => status))).toEqual(new Set([401]))
  expect(countReasons(judged)).toEqual({
    header_parameter_forbidden: 30,
    key_id_invalid: 19,
    key_unknown: 12,
    signature_invalid: 1,
    static_key_refused: 1,
    token_malformed: 1,
  })
})
