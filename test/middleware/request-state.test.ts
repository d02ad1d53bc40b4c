import type { Request } from 'express'
import { describe, expect, test, vi } from 'vitest'
import { ServiceAuthError } from '../../src/decision/fault.js'
import type { IdempotencyContext } from '../../src/idempotency/run.js'
import {
  type Admission,
  admissionOf,
  assertBeforeKey,
  serviceOf,
  stateOf,
} from '../../src/middleware/request-state.js'

const newRequest = (): Request => ({ rawHeaders: [] as string[] }) as Request
const ADMISSION = { identity: { name: 'billing' } } as Admission

describe('the state of a request', () => {
  test('is its own, and stays the same', () => {
    const request = newRequest()
    expect(stateOf(request)).toBe(stateOf(request))
    expect(stateOf(newRequest())).not.toBe(stateOf(request))
  })

  test('is not shared with another request that is made with the same headers', () => {
    const request = newRequest()
    stateOf(request).admission = ADMISSION
    stateOf(request).consumedIn = new Set([{}])
    const other = { rawHeaders: request.rawHeaders } as Request
    expect(() => admissionOf(stateOf(other), 'x')).toThrow(ServiceAuthError)
    expect(stateOf(other).consumedIn).toBeUndefined()
    expect(() => serviceOf(other)).toThrow(ServiceAuthError)
  })

  test('is lost when the request is given other headers', () => {
    const request = newRequest()
    stateOf(request).admission = ADMISSION
    request.rawHeaders = [...request.rawHeaders]
    expect(() => serviceOf(request)).toThrow(ServiceAuthError)
  })

  test('gives no admission before a serviceAuth has accepted', () => {
    const request = newRequest()
    expect(() => admissionOf(stateOf(request), 'x')).toThrow(ServiceAuthError)
    expect(() => admissionOf(stateOf(request), 'x')).toThrow(/x needs a serviceAuth/)
    expect(() => serviceOf(request)).toThrow(ServiceAuthError)
  })

  test('gives it afterwards, but not while another serviceAuth has not accepted', () => {
    const request = newRequest()
    const state = stateOf(request)
    state.admission = ADMISSION
    expect(admissionOf(stateOf(request), 'x')).toBe(ADMISSION)
    expect(serviceOf(request)).toBe(ADMISSION.identity)
    state.unaccepted = 1
    expect(() => admissionOf(stateOf(request), 'x')).toThrow(ServiceAuthError)
    expect(() => serviceOf(request)).toThrow(ServiceAuthError)
  })

  test('takes nothing from req.service', () => {
    const request = Object.assign(newRequest(), { service: ADMISSION.identity })
    expect(() => serviceOf(request)).toThrow(ServiceAuthError)
  })

  test('lets no check come after the key, and frees the key', () => {
    const request = newRequest()
    expect(() => assertBeforeKey(stateOf(request), 'x')).not.toThrow()
    const release = vi.fn()
    stateOf(request).reservation = { release } as unknown as IdempotencyContext
    expect(() => assertBeforeKey(stateOf(request), 'x')).toThrow(
      /x comes after requireIdempotencyKey/,
    )
    expect(release).toHaveBeenCalledOnce()
  })
})
