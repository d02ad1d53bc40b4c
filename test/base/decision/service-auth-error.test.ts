import { expect, it } from 'vitest'
import {
  ServiceAuthError,
  toServiceAuthError,
  wrongWiring,
} from '../../../src/base/decision/service-auth-error.js'

it('whatever is thrown is wrapped, so that nothing of it speaks to Express', () => {
  const odd = Object.assign(new Error('odd'), { status: 200, headers: {} })
  for (const thrown of [odd, 'text', undefined, null, { statusCode: 200 }]) {
    const fault = toServiceAuthError('serviceAuth', thrown)
    expect(fault).toBeInstanceOf(ServiceAuthError)
    expect(fault).toMatchObject({ name: 'ServiceAuthError', code: 'internal' })
    expect(fault.cause).toBe(thrown)
    expect('status' in fault || 'statusCode' in fault || 'headers' in fault).toBe(false)
    expect(fault.message).toContain('serviceAuth')
  }
})

it('a fault of our own stays what it is', () => {
  const wiring = wrongWiring('x needs y')
  expect(wiring).toMatchObject({ code: 'wrong_wiring', message: 'x needs y' })
  expect(toServiceAuthError('serviceAuth', wiring)).toBe(wiring)
})
