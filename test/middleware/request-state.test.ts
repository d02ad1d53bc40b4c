import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import type { Request } from 'express'
import { describe, expect, it, vi } from 'vitest'
import { ServiceAuthError } from '../../src/base/decision/service-auth-error.js'
import {
  type Admission,
  admittedState,
  assertBeforeKey,
  beginState,
  serviceOf,
} from '../../src/middleware/request-state.js'

const newRequest = (): Request => new IncomingMessage(new Socket()) as Request

const ADMISSION = { identity: { name: 'billing' } } as Admission

const admitted = (): Request => {
  const request = newRequest()
  beginState(request).admission = ADMISSION
  return request
}

/** Whatever else carries what a request carries. */
const STAND_INS: [string, (request: Request) => Request][] = [
  ['a copy', (request) => Object.assign(Object.create(Object.getPrototypeOf(request)), request)],
  ['a plain copy', (request) => ({ ...request }) as Request],
  ['an object below it', (request) => Object.create(request)],
  ['a proxy', (request) => new Proxy(request, {})],
]

describe('the state of a request', () => {
  it('is its own, and stays the same', () => {
    const request = newRequest()
    expect(beginState(request)).toBe(beginState(request))
    expect(beginState(newRequest())).not.toBe(beginState(request))
  })

  it('stays when the request is given other headers or another prototype', () => {
    const request = admitted()
    request.rawHeaders = []
    Object.setPrototypeOf(request, Object.create(Object.create(IncomingMessage.prototype)))
    expect(serviceOf(request)).toBe(ADMISSION.identity)
  })

  it.each(STAND_INS)('is not that of %s, which carries no admission', (_name, standInFor) => {
    const request = admitted()
    const standIn = standInFor(request)
    expect(() => serviceOf(standIn)).toThrow(ServiceAuthError)
    expect(() => admittedState(standIn, 'x')).toThrow(ServiceAuthError)
    expect(serviceOf(request)).toBe(ADMISSION.identity)
  })

  it.each(STAND_INS)('of %s begins again, and is never another one’s', (_name, standInFor) => {
    const request = admitted()
    const standIn = standInFor(request)
    const another = { identity: { name: 'another' } } as Admission
    expect(beginState(standIn).admission).toBeUndefined()
    beginState(standIn).admission = another
    expect(serviceOf(standIn).name).toBe('another')
    let name: string | undefined
    try {
      name = serviceOf(request).name
    } catch (error) {
      // A proxy puts what it is given on the request itself, which then belongs to neither.
      expect(error).toBeInstanceOf(ServiceAuthError)
    }
    expect(name).not.toBe('another')
  })

  it('gives no admission before a serviceAuth has accepted', () => {
    const request = newRequest()
    for (const begin of [false, true]) {
      if (begin) beginState(request)
      expect(() => admittedState(request, 'x')).toThrow(ServiceAuthError)
      expect(() => admittedState(request, 'x')).toThrow(/x needs a serviceAuth/)
      expect(() => serviceOf(request)).toThrow(ServiceAuthError)
    }
  })

  it('says that the request is missing', () => {
    const none = undefined as unknown as Request
    expect(() => serviceOf(none)).toThrow('serviceOf: must be given the request')
  })

  it('gives it afterwards, but not while another serviceAuth has not accepted', () => {
    const request = admitted()
    expect(admittedState(request, 'x').admission).toBe(ADMISSION)
    beginState(request).unaccepted = 1
    expect(() => admittedState(request, 'x')).toThrow(ServiceAuthError)
    expect(() => serviceOf(request)).toThrow(ServiceAuthError)
  })

  it('lets no check come after the key, and frees the key', () => {
    const state = beginState(newRequest())
    expect(() => assertBeforeKey(state, 'x')).not.toThrow()
    const release = vi.fn()
    state.reservation = { release }
    expect(() => assertBeforeKey(state, 'x')).toThrow(/x comes after requireIdempotencyKey/)
    expect(release).toHaveBeenCalledOnce()
  })
})
