import { expect, it } from 'vitest'
import { Unavailable } from '../../../src/base/decision/unavailable.js'

it('it says what is unreachable, and why', () => {
  const cause = new Error('refused')
  const error = new Unavailable('store', 'the store failed', { cause })
  expect(error).toMatchObject({ code: 'unavailable', what: 'store', message: 'the store failed' })
  expect(error.cause).toBe(cause)
})
