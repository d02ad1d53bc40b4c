import { EventEmitter, once } from 'node:events'
import { createServer, IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, connect, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { createStandIns, type ResponseFunctions } from '../../src/held-response/stand-in.js'

const NAMES = ['writeHead', 'flushHeaders', 'write', 'end', 'destroy', 'emit'] as const

const injected = (): ServerResponse => new ServerResponse(new IncomingMessage(new Socket()))

/** As a server makes it: with such a function of its own. */
const made = (): ServerResponse => Object.assign(injected(), { _onPendingData() {} })

interface State {
  readonly calls: string[]
  readonly found: ResponseFunctions
}

function watching() {
  const noted =
    (name: string) =>
    ({ calls }: State, args: unknown[]): string => {
      calls.push([name, ...args].join(' '))
      return name
    }
  const { standBefore } = createStandIns<State>({
    writeHead: noted('writeHead'),
    flushHeaders: noted('flushHeaders'),
    write: noted('write'),
    end: noted('end'),
    destroy: noted('destroy'),
    emit: noted('emit'),
    writableEnded: ({ calls }) => calls.includes('end'),
  })
  return (response: ServerResponse): State => {
    let state: State | undefined
    standBefore(response, (found) => {
      state = { calls: [], found }
      return state
    })
    return state as unknown as State
  }
}

const functionsOf = (response: ServerResponse) =>
  response as unknown as Record<(typeof NAMES)[number], (...args: unknown[]) => unknown>

describe('What stands before the functions of a response', () => {
  it.each([
    ['as Node made it', made],
    ['that no server has made', injected],
    ['with a function of its own', () => Object.assign(made(), { end: () => 'own' })],
    ['below another object', () => Object.create(made()) as ServerResponse],
  ])('is called instead of them, on a response %s', (_name, make) => {
    const watch = watching()
    const response = make()
    const { calls } = watch(response)
    expect(response.writableEnded).toBe(false)
    for (const name of NAMES) expect(functionsOf(response)[name]('a', 'b')).toBe(name)
    expect(calls).toEqual(NAMES.map((name) => `${name} a b`))
    response.end()
    expect(response.writableEnded).toBe(true)
  })

  it('is called by a response that was wrapped before, however the wrapper binds', () => {
    const watch = watching()
    const response = made()
    const binding = new Proxy(response, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const { calls } = watch(binding)
    expect(functionsOf(binding).end('a')).toBe('end')
    expect(functionsOf(response).end('b')).toBe('end')
    expect(calls).toEqual(['end a', 'end b'])
  })

  it('is not called by the original of a copy, nor by one that shares its functions', () => {
    const watch = watching()
    const original = made()
    const copy = Object.assign(Object.create(ServerResponse.prototype), original) as ServerResponse
    const { calls } = watch(copy)
    expect(original.end()).toBe(original)
    const own = watch(original)
    expect(functionsOf(original).write('a')).toBe('write')
    expect(functionsOf(copy).write('b')).toBe('write')
    expect([calls, own.calls]).toEqual([['write b'], ['write a']])
  })

  it('adds nothing to a response that a server has made', async () => {
    const watch = watching()
    const server = createServer((_request, response) => {
      const keys = Reflect.ownKeys(response)
      const { calls } = watch(response)
      response.end('a')
      const added = Reflect.ownKeys(response).filter((key) => !keys.includes(key))
      response.socket?.end(`${calls.join()} ${added.length}`)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    expect(await text(client)).toBe('end a 0')
    server.close()
  })

  it('is called by a proxy of the response, not by another response to the same request', () => {
    const watch = watching()
    const response = made()
    const { calls } = watch(response)
    const proxy = new Proxy(response, {})
    expect(functionsOf(proxy).end('a')).toBe('end')
    const another = Object.assign(new ServerResponse(response.req), { _onPendingData() {} })
    expect(another.end()).toBe(another)
    expect(new Proxy(new ServerResponse(response.req), {}).writableEnded).toBe(false)
    expect(calls).toEqual(['end a'])
    const further = watch(another)
    expect(functionsOf(another).end('b')).toBe('end')
    expect([calls, further.calls]).toEqual([['end a'], ['end b']])
  })

  it('gets the functions as they were found', () => {
    const watch = watching()
    const plain = made()
    Reflect.apply(watch(plain).found.end, plain, [])
    expect(plain.finished).toBe(true)
    const own = Object.assign(made(), { end: () => 'own' }) as unknown as ServerResponse
    expect(Reflect.apply(watch(own).found.end, own, [])).toBe('own')
  })

  it('lets every other response pass', () => {
    const watch = watching()
    const { calls } = watch(made())
    const other = made()
    const seen: string[] = []
    other.on('one', () => seen.push('one'))
    expect(other.emit('one')).toBe(true)
    expect(other.writeHead(201, { 'x-a': '1' })).toBe(other)
    expect(other.end('body')).toBe(other)
    expect(other.writableEnded).toBe(true)
    expect([seen, calls]).toEqual([['one'], []])
  })

  it('sees what is put into the prototypes below afterwards', () => {
    watching()(made())
    const { emit } = EventEmitter.prototype
    const seen: unknown[] = []
    EventEmitter.prototype.emit = function (this: unknown, ...args: unknown[]) {
      seen.push(args[0])
      return Reflect.apply(emit, this, args)
    }
    try {
      made().emit('late')
    } finally {
      EventEmitter.prototype.emit = emit
    }
    expect(seen).toEqual(['late'])
  })

  it('leaves the prototype of all responses looking as it did', () => {
    const plain = { end: ServerResponse.prototype.end.length, names: Object.keys(made()) }
    watching()(made())
    expect({ end: ServerResponse.prototype.end.length, names: Object.keys(made()) }).toEqual(plain)
    const names: string[] = []
    for (const name in made()) names.push(name)
    expect(names).toEqual(expect.arrayContaining(['end', 'write', 'emit', 'setHeader']))
    const watched = made()
    watching()(watched)
    expect(inspect(watched)).not.toContain('stand-in')
  })

  it('survives that Express gives the response another prototype', () => {
    const response = made()
    const { calls } = watching()(response)
    Object.setPrototypeOf(response, Object.create(ServerResponse.prototype))
    response.end('x')
    expect(calls).toEqual(['end x'])
  })

  it('stands before what stands before already', () => {
    const response = made()
    const inner = watching()(response)
    const outer = watching()(response)
    response.end('x')
    expect([inner.calls, outer.calls]).toEqual([[], ['end x']])
    Reflect.apply(outer.found.end, response, ['y'])
    expect(inner.calls).toEqual(['end y'])
  })
})
