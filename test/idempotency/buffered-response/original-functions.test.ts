import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import {
  createReplacer,
  type ResponseFunctions,
} from '../../../src/idempotency/buffered-response/original-functions.js'

const NAMES = [
  'setHeader',
  'setHeaders',
  'appendHeader',
  'removeHeader',
  'writeHead',
  'flushHeaders',
  'write',
  'end',
  'destroy',
] as const

const made = (): ServerResponse => new ServerResponse(new IncomingMessage(new Socket()))

interface State {
  readonly calls: string[]
  readonly originals: ResponseFunctions
}

/** An interception that notes what is called. */
function interception() {
  const noted =
    (name: string) =>
    ({ calls }: State, args: unknown[]): string => {
      calls.push([name, ...args].join(' '))
      return name
    }
  const functions = Object.fromEntries(NAMES.map((name) => [name, noted(name)]))
  const hold = createReplacer<State>(functions as Parameters<typeof createReplacer<State>>[0])
  return (response: ServerResponse): State => {
    let state: State | undefined
    hold(response, (originals) => {
      state = { calls: [], originals }
      return state
    })
    return state as unknown as State
  }
}

const functionsOf = (response: ServerResponse) => response as unknown as ResponseFunctions

const bindingProxy = (response: ServerResponse): ServerResponse =>
  new Proxy(response, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

const copyOf = (response: ServerResponse): ServerResponse =>
  Object.assign(Object.create(ServerResponse.prototype), response)

describe('The functions of a held response', () => {
  it.each([
    ['as Node made it', made],
    ['with a function of its own', () => Object.assign(made(), { end: () => 'own' })],
    ['below another object', () => Object.create(made()) as ServerResponse],
  ])('are ours, on a response %s', (_name, make) => {
    const response = make()
    const { calls } = interception()(response)
    for (const name of NAMES) expect(functionsOf(response)[name]('a', 'b')).toBe(name)
    expect(calls).toEqual(NAMES.map((name) => `${name} a b`))
  })

  it('are the same for all responses, and stand on these alone', () => {
    const before = NAMES.map((name) => ServerResponse.prototype[name])
    const hold = interception()
    const [first, second, other] = [made(), made(), made()]
    hold(first)
    hold(second)
    for (const name of NAMES) {
      expect(first[name]).toBe(second[name])
      expect(Object.hasOwn(other, name)).toBe(false)
    }
    expect(NAMES.map((name) => ServerResponse.prototype[name])).toEqual(before)
  })

  it.each([
    ['a proxy', (response: ServerResponse) => new Proxy(response, {})],
    ['a binding proxy', bindingProxy],
    ['an object below it', (response: ServerResponse) => Object.create(response) as ServerResponse],
    ['a copy', copyOf],
  ])('are called by what stands for the response: %s', (_name, standInFor) => {
    const response = made()
    const { calls } = interception()(response)
    expect(functionsOf(standInFor(response)).end('a')).toBe('end')
    expect(calls).toEqual(['end a'])
  })

  it('are called by a response whose proxy is held', () => {
    const response = made()
    const binding = bindingProxy(response)
    const { calls } = interception()(binding)
    expect(functionsOf(binding).end('a')).toBe('end')
    expect(functionsOf(response).end('b')).toBe('end')
    expect(calls).toEqual(['end a', 'end b'])
  })

  it('survive that Express gives the response another prototype', () => {
    const response = made()
    const { calls } = interception()(response)
    Object.setPrototypeOf(response, Object.create(ServerResponse.prototype))
    response.end('x')
    expect(calls).toEqual(['end x'])
  })

  it('know those that they stand before', () => {
    const plain = made()
    Reflect.apply(interception()(plain).originals.end, plain, [])
    expect(plain.finished).toBe(true)
    const own = Object.assign(made(), { end: () => 'own' }) as unknown as ServerResponse
    expect(Reflect.apply(interception()(own).originals.end, own, [])).toBe('own')
  })

  it('stand before those of another copy of the package', () => {
    const response = made()
    const inner = interception()(response)
    const outer = interception()(response)
    response.end('x')
    expect([inner.calls, outer.calls]).toEqual([[], ['end x']])
    Reflect.apply(outer.originals.end, response, ['y'])
    expect(inner.calls).toEqual(['end y'])
  })

  it('of a copy that is held by itself never lead to themselves', () => {
    const hold = interception()
    const response = made()
    const original = hold(response)
    const copy = copyOf(response)
    const own = hold(copy)
    copy.end('copy')
    response.end('original')
    expect([original.calls, own.calls]).toEqual([['end original'], ['end copy']])
    Reflect.apply(own.originals.end, copy, [])
    expect(copy.finished).toBe(true)
    expect(response.finished).toBe(false)
  })

  it('are those of Node on a response that is not held', () => {
    const held = made()
    interception()(held)
    const other = made()
    other.end = held.end
    other.end()
    expect(other.finished).toBe(true)
  })
})
