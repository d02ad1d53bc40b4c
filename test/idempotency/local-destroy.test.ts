import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { watchLocalDestroy } from '../../src/idempotency/local-destroy.js'
import { until } from '../support/until.js'

describe('watchLocalDestroy', () => {
  let server: Server
  afterEach(() => {
    server.close()
    server.closeAllConnections()
  })

  /** A request on a socket of its own, and how often its response's watcher was called. */
  async function ask(prepare: (server: Server) => void = () => {}) {
    server = createServer()
    prepare(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    client.on('error', () => {})
    client.resume().write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    const [request, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse]
    let calls = 0
    watchLocalDestroy(response, () => {
      calls += 1
    })
    return { client, request, response, calls: () => calls }
  }

  it('tells when this process destroys the connection', async () => {
    const { request, response, calls } = await ask()
    request.socket.destroy()
    await once(response, 'close')
    expect(calls()).toBe(1)
  })

  it.each(['end', 'destroy', 'resetAndDestroy'] as const)(
    'does not tell when the caller hangs up (%s)',
    async (how) => {
      const { client, response, calls } = await ask()
      client[how]()
      await once(response, 'close')
      expect(calls()).toBe(0)
    },
  )

  it('does not tell when a timeout strikes', async () => {
    const { response, calls } = await ask((made) => made.setTimeout(20))
    await once(response, 'close')
    expect(calls()).toBe(0)
  })

  it('does not tell when the server closes', async () => {
    const { response, calls } = await ask()
    server.close()
    server.closeAllConnections()
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
    let calls = 0
    watchLocalDestroy(nextResponse, () => {
      calls += 1
    })
    expect(next.socket.destroy).toBe(destroy)
    next.socket.destroy()
    expect(calls).toBe(1)
  })

  it('bears a response without a real connection', () => {
    const response = { req: {} } as unknown as ServerResponse
    expect(() => watchLocalDestroy(response, () => {})).not.toThrow()
  })
})
