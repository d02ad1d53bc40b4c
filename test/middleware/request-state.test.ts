import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
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

const inForm = (): Request => ({ rawHeaders: [] as string[] }) as Request
const ofNode = (): Request => new IncomingMessage(new Socket()) as Request
const ADMISSION = { identity: { name: 'billing' } } as Admission

describe.each([
  ['of Node', ofNode],
  ['in form only', inForm],
])('the state of a request %s', (_name, newRequest) => {
  test('is its own, and stays the same', () => {
    const request = newRequest()
    expect(stateOf(request)).toBe(stateOf(request))
    expect(stateOf(newRequest())).not.toBe(stateOf(request))
  })

  test('is not shared with another request that is made with the same headers', () => {
    const request = newRequest()
    stateOf(request).admission = ADMISSION
    stateOf(request).consumedIn = new Set([{}])
    const other = newRequest()
    other.rawHeaders = request.rawHeaders
    expect(() => admissionOf(stateOf(other), 'x')).toThrow(ServiceAuthError)
    expect(stateOf(other).consumedIn).toBeUndefined()
    expect(() => serviceOf(other)).toThrow(ServiceAuthError)
  })

  test('is lost when the request is given other headers', () => {
    const request = newRequest()
    stateOf(request).admission = ADMISSION
    const { rawHeaders } = request
    request.rawHeaders = [...rawHeaders]
    expect(() => serviceOf(request)).toThrow(ServiceAuthError)
    stateOf(request).admission = { identity: { name: 'another' } } as Admission
    expect(serviceOf(request).name).toBe('another')
  })

  test.each([
    ['a proxy', (request: Request) => new Proxy(request, {})],
    ['an object below it', (request: Request) => Object.create(request) as Request],
  ])('is not that of %s', (_wrapper, wrap) => {
    const request = newRequest()
    const wrapper = wrap(request)
    stateOf(request).admission = ADMISSION
    expect(() => serviceOf(wrapper)).toThrow(ServiceAuthError)
    expect(stateOf(wrapper)).toBe(stateOf(wrapper))
    const first = newRequest()
    stateOf(wrap(first)).admission = ADMISSION
    expect(() => serviceOf(first)).toThrow(ServiceAuthError)
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
