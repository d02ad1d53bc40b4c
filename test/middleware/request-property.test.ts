import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import type { Request } from 'express'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type RequestProperty, requestProperty } from '../../src/middleware/request-property.js'
import { type Admission, stateOf } from '../../src/middleware/request-state.js'
import type { ServiceIdentity } from '../../src/policy/identity.js'

const identity = { name: 'billing' } as ServiceIdentity
const another = { name: 'reporting' } as ServiceIdentity
const { prototype } = IncomingMessage as { prototype: { service?: unknown } }

/** A request as Express hands it on, its prototypes those of an app and of Express. */
function newRequest(express: object = Object.create(IncomingMessage.prototype)): Request {
  const request = new IncomingMessage(new Socket())
  Object.setPrototypeOf(request, Object.create(express))
  return request as Request
}

describe('a property of requests', () => {
  let property: RequestProperty
  beforeEach(() => {
    property = requestProperty('service', ({ admission }) => admission?.identity)
    property.place()
  })
  afterEach(() => {
    delete prototype.service
  })

  function show(request: Request, shown: ServiceIdentity = identity): Request {
    const state = stateOf(request)
    state.admission = { identity: shown } as Admission
    property.show(state)
    return request
  }

  test('shows what guards know, without a property on the request', () => {
    const request = show(newRequest())
    expect(request.service).toBe(identity)
    expect(Object.hasOwn(request, 'service')).toBe(false)
    expect(show(request, another).service).toBe(another)
  })

  test('is undefined for requests of which nothing is known, and never throws', () => {
    show(newRequest())
    expect(newRequest().service).toBeUndefined()
    expect(new IncomingMessage(new Socket())).toHaveProperty('service', undefined)
    expect(prototype.service).toBeUndefined()
    for (const odd of [5, 'text', undefined, null, {}]) {
      expect(Reflect.get(IncomingMessage.prototype, 'service', odd)).toBeUndefined()
    }
  })

  test('is not listed among the properties of any request', () => {
    const request = show(newRequest())
    expect(Object.keys(request)).not.toContain('service')
    for (const name in request) expect(name).not.toBe('service')
  })

  test('shows nothing on another request with the same headers', () => {
    const request = show(newRequest())
    const part = newRequest()
    part.rawHeaders = request.rawHeaders
    expect(part.service).toBeUndefined()
    expect(show(part, another).service).toBe(another)
    expect(request.service).toBe(identity)
  })

  test('stays when the request is given other headers', () => {
    const request = show(newRequest())
    request.rawHeaders = []
    expect(request.service).toBe(identity)
  })

  test('of a wrapper is its own, whatever the request and its other wrappers have', () => {
    const wrap = [
      (request: Request) => Object.create(request) as Request,
      (request: Request) => Object.assign(Object.create(request), { url: '/part' }) as Request,
    ]
    for (const make of wrap) {
      const request = newRequest()
      const [part, other] = [make(request), make(request)]
      show(part, another)
      expect([request.service, part.service, other.service]).toEqual([
        undefined,
        another,
        undefined,
      ])
      show(request)
      expect([request.service, part.service, other.service]).toEqual([identity, another, identity])
      show(other)
      expect([request.service, part.service, other.service]).toEqual([identity, another, identity])
    }
  })

  test('of a copy is its own, as for the parts of a batch', () => {
    const copyOf = (request: Request): Request =>
      Object.assign(Object.create(Object.getPrototypeOf(request)), request)
    const request = newRequest()
    const [first, second] = [copyOf(request), copyOf(request)]
    show(first)
    const all = [request, first, second]
    expect(all.map((each) => each.service)).toEqual([undefined, identity, undefined])
    show(second, another)
    expect(all.map((each) => each.service)).toEqual([undefined, identity, another])
  })

  test('of a proxy is there, also where guards have met the request before', () => {
    for (const isKnown of [true, false]) {
      const request = newRequest()
      if (isKnown) stateOf(request)
      expect(show(new Proxy(request, {})).service).toBe(identity)
    }
  })

  test('shows through wrappers of the request', () => {
    const request = show(newRequest())
    expect(new Proxy(request, {}).service).toBe(identity)
    expect(Object.create(request).service).toBe(identity)
  })

  test('stays when another copy of Express changes the prototypes of the request', () => {
    const request = show(newRequest())
    Object.setPrototypeOf(request, Object.create(Object.create(IncomingMessage.prototype)))
    expect(request.service).toBe(identity)
  })

  test('can be assigned, before and afterwards, as any property', () => {
    const request = show(newRequest())
    request.service = another
    expect(request.service).toBe(another)
    expect(Object.getOwnPropertyDescriptor(request, 'service')).toEqual({
      configurable: true,
      enumerable: true,
      value: another,
      writable: true,
    })
    expect(show(request).service).toBe(identity)
    const early = newRequest()
    early.service = another
    expect(show(early).service).toBe(identity)
  })

  test('stands before what an app has under that name', () => {
    const express = Object.create(IncomingMessage.prototype)
    Object.defineProperty(express, 'service', { value: 'a registry', writable: false })
    expect(newRequest(express).service).toBe('a registry')
    expect(show(newRequest(express)).service).toBe(identity)
  })

  test('is placed on the request itself where another copy of the package stands already', () => {
    property = requestProperty('service', ({ admission }) => admission?.identity)
    property.place()
    expect(show(newRequest(), another).service).toBe(another)
    expect(Object.hasOwn(show(newRequest()), 'service')).toBe(true)
  })

  test('is placed on what is a request in form only', () => {
    const request = { rawHeaders: [] as string[] } as Request
    expect(show(request).service).toBe(identity)
    expect(Object.keys(request)).toContain('service')
  })
})
