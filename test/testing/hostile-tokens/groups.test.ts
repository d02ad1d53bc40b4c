import { expect, it } from 'vitest'
import { formCases } from '../../../src/testing/hostile-tokens/form-cases.js'
import { headerCases } from '../../../src/testing/hostile-tokens/header-cases.js'
import {
  algorithmCases,
  signatureCases,
} from '../../../src/testing/hostile-tokens/hostile-tokens.js'
import { countReasons, judgeCases } from '../reasons.js'

it.each([
  {
    group: 'algorithm',
    cases: algorithmCases,
    reasons: { algorithm_not_allowed: 33, signature_invalid: 5, token_malformed: 4 },
  },
  {
    group: 'signature',
    cases: signatureCases,
    reasons: { algorithm_not_allowed: 1, signature_invalid: 22, token_malformed: 1 },
  },
  {
    group: 'form',
    cases: formCases,
    reasons: {
      algorithm_not_allowed: 1,
      claim_missing: 1,
      signature_invalid: 1,
      token_malformed: 61,
      token_too_long: 4,
    },
  },
  {
    group: 'header',
    cases: headerCases,
    reasons: {
      header_parameter_forbidden: 30,
      key_id_invalid: 19,
      key_unknown: 12,
      signature_invalid: 1,
      static_key_refused: 1,
      token_malformed: 1,
    },
  },
])('each case of the $group is refused, for the reason it was made for', async (row) => {
  const judged = await judgeCases(row.cases)
  expect(new Set(judged.map(({ status }) => status))).toEqual(new Set([401]))
  expect(countReasons(judged)).toEqual(row.reasons)
})
