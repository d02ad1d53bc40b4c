import { expect, it } from 'vitest'
import { deny } from '../../../src/base/decision/reason.js'

it('no evidence is shared and frozen', () => {
  expect(deny('key_unknown').evidence).toBe(deny('token_malformed').evidence)
  expect(Object.isFrozen(deny('key_unknown').evidence)).toBe(true)
})
