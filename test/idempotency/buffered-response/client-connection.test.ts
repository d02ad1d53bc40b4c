import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { watchConnection } from '../../../src/idempotency/buffered-response/client-connection.js'
import { until } from '../../support/until.js'

describe('watchConnection', () => {
  let server: Server
  afterEach(() => {
    server.close()
    server.closeAllConnections()
  })

  /** Watches a response: how often it was told of what. */
  function watch(response: ServerResponse, isDue = false) {
    const postponed: (() => void)[] = []
    const told = { destroyed: 0, closed: 0 }
    const leave = watchConnection({
      response,
      deferDestroy: (act) => isDue && postponed.push(act) > 0,
      onInterrupt: () => {
        told.destroyed += 1
      },
      onDisconnect: () => {
        told.closed += 1
      },
    })
    response.once?.('close', leave)
    return { calls: () => told.destroyed, closings: () => told.closed, postponed }
  }

  /** A request on a socket of its own, and how often its response's watcher was called. */
  async function ask(prepare: (server: Server) => unknown = () => {}, isDue = false) {
    server = createServer({ connectionsCheckingInterval: 20 })
    prepare(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    client.on('error', () => {})
    client.resume().write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    const [request, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse]
    return { client, request, response, ...watch(response, isDue) }
  }

  it.each<[string, (socket: Socket) => unknown]>([
    ['destroys the connection', (socket) => socket.destroy()],
    ['destroys it for a reason of its own', (socket) => socket.destroy(new Error('a reason'))],
    ['ends it', (socket) => socket.end()],
    ['destroys it soon', (socket) => socket.destroySoon()],
    ['resets it', (socket) => socket.resetAndDestroy()],
  ])('tells when this process %s', async (_how, act) => {
    const { request, response, calls } = await ask()
    act(request.socket)
    await once(response, 'close')
    expect(calls()).toBeGreaterThan(0)
  })

  it.each(['end', 'destroy', 'destroySoon', 'resetAndDestroy'] as const)(
    'lets a response that is due be sent before this process ends the connection (%s)',
    async (how) => {
      const { client, request, response, calls, postponed } = await ask(() => {}, true)
      let received = ''
      client.on('data', (chunk) => {
        received += chunk
      })
      request.socket[how]()
      await new Promise(setImmediate)
      response.end('due')
      await until('the answer', async () => received.endsWith('due'))
      expect(request.socket.closed).toBe(false)
      for (const act of postponed) act()
      await until('the end', async () => request.socket.closed)
      expect(calls()).toBe(0)
    },
  )

  it('does not wait with a timeout or the end of the server', async () => {
    const struck = await ask((made) => made.setTimeout(20), true)
    await once(struck.response, 'close')
    server.close()
    const closed = await ask(() => {}, true)
    server.close()
    server.closeAllConnections()
    await once(closed.response, 'close')
    expect([struck.postponed, closed.postponed]).toEqual([[], []])
  })

  it.each<[string, (client: Socket) => unknown]>([
    ['ends the connection', (client) => client.end()],
    ['destroys it', (client) => client.destroy()],
    ['resets it', (client) => client.resetAndDestroy()],
    [
      'sends a request of another size than announced',
      (client) => client.write('GET / HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n'),
    ],
    ['sends no HTTP', (client) => client.write('what?\r\n\r\n')],
    ['does not finish a request in time', (client) => client.write('GET / HTTP/1.1\r\n')],
  ])('does not tell when the caller %s', async (_how, act) => {
    const { client, response, calls } = await ask()
    server.headersTimeout = 50
    act(client)
    await once(response, 'close')
    expect(calls()).toBe(0)
  })

  it.each<[string, (server: Server) => unknown, () => unknown]>([
    ['a timeout strikes', (made) => made.setTimeout(20), () => {}],
    ['the server closes', () => {}, () => [server.close(), server.closeAllConnections()]],
  ])('does not tell when %s', async (_what, prepare, act) => {
    const { response, calls } = await ask(prepare)
    act()
    await once(response, 'close')
    expect(calls()).toBe(0)
  })

  it('does not tell of what becomes of the connection after the response', async () => {
    const { request, response, calls } = await ask()
    response.end('done')
    await once(response, 'close')
    request.socket.destroy()
    await until('the end', async () => request.socket.closed)
    expect(calls()).toBe(0)
  })

  it('stands before the connection once, however many requests it carries', async () => {
    const { client, request, response } = await ask()
    const { destroy } = request.socket
    response.end()
    await once(response, 'close')
    client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    const [next, nextResponse] = (await once(server, 'request')) as [
      IncomingMessage,
      ServerResponse,
    ]
    const { calls } = watch(nextResponse)
    expect(next.socket.destroy).toBe(destroy)
    next.socket.destroy()
    expect(calls()).toBe(1)
  })

  it('tells all responses on a connection when it has gone, none that was done before', async () => {
    const { client, response, closings } = await ask()
    client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(2))
    const behind: ServerResponse[] = []
    server.on('request', (_request, further: ServerResponse) => behind.push(further))
    await until('both', async () => behind.length === 2)
    const watches = behind.map((each) => watch(each))
    response.end()
    await once(response, 'close')
    client.destroy()
    await until('the end', async () => response.req.socket.closed)
    expect([closings(), ...watches.map((each) => each.closings())]).toEqual([0, 1, 1])
    expect(watches.map((each) => each.calls())).toEqual([0, 0])
  })

  it('tells nobody of a destruction where several wait: whose error it was is not known', async () => {
    const { client, request, response, calls } = await ask()
    client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    const [, behind] = (await once(server, 'request')) as [IncomingMessage, ServerResponse]
    const another = watch(behind)
    request.socket.destroy()
    await once(response, 'close')
    expect([calls(), another.calls()]).toEqual([0, 0])
    expect(another.closings()).toBe(1)
  })

  it('bears a response without a real connection', () => {
    const sockets = [undefined, {}, { readable: false, end() {}, destroy() {} }]
    for (const socket of sockets) {
      expect(() => watch({ req: { socket } } as unknown as ServerResponse)).not.toThrow()
    }
  })
})
