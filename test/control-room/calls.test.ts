import { execFile } from 'node:child_process'
import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { compose, curlCommand } from '../../example-app/control-room/calls/compose.js'
import { exchange } from '../../example-app/control-room/calls/raw-exchange.js'
import { GOOD_READ, GOOD_WRITE } from '../../example-app/control-room/page/compose/good-calls.js'
import type { CallResult } from '../../example-app/control-room/protocol.js'
import { listen } from '../../example-app/listen.js'
import { API_KEY, openRoomHere, type RoomHere } from './calls-kit.js'

let room: RoomHere

beforeAll(async () => {
  room = await openRoomHere()
})
afterAll(() => room.close())

const statusOf = ({ answer }: CallResult) => ('status' in answer ? answer.status : answer.failure)

describe('a call', () => {
  it('shows what the caller got to the byte, and what the operator saw', async () => {
    const result = await room.callers.call(GOOD_READ)
    const { request, answer, operator } = result
    expect(statusOf(result)).toBe(200)
    expect(answer.text).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(answer.text).toMatch(/\r\n\r\n\{"id":"o-1".*\}$/)
    expect(answer).toMatchObject({ bytes: Buffer.byteLength(answer.text) })
    expect(request.text).toContain('GET /orders/o-1 HTTP/1.1\r\n')
    expect(request.text).toContain(`X-Room-Call: ${result.id}\r\n`)
    expect(request.token.header).toMatchObject({ alg: 'RS256' })
    expect(request.token.payload).toMatchObject({ sub: 'billing', aud: 'orders' })
    expect(operator).toMatchObject({ outcome: 'accepted', caller: 'billing' })
    expect(operator.steps.every(({ state }) => state === 'passed')).toBe(true)
    expect(operator.steps.map(({ name }) => name)).not.toContain('Idempotency-Key')
    expect(operator.events.map(({ call }) => call)).toEqual(operator.events.map(() => result.id))
  })

  it('never shows a whole token', async () => {
    const { request } = await room.callers.call(GOOD_READ)
    expect(request.token.authorization.length).toBeLessThan(50)
    expect(request.text).not.toMatch(/Bearer \S{60}/)
  })

  it('is a command for a shell, with the same token, key and body', async () => {
    const inShell = async (curl: string) => (await promisify(execFile)('sh', ['-c', curl])).stdout
    const { request } = await room.callers.call(GOOD_READ)
    expect(request.curl).not.toContain(API_KEY)
    const answer = await inShell(request.curl)
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(answer).toContain('"id":"o-1"')

    const got: unknown[] = []
    const server = await listen(async (incoming, response) => {
      const { authorization, 'idempotency-key': key } = incoming.headers
      got.push([incoming.method, incoming.url, authorization, key, await text(incoming)])
      response.end()
    }, 0)
    onTestFinished(server.close)
    const { url } = server
    const composed = { ...compose(GOOD_WRITE, 'k-1'), body: `{"it's":"$HOME \\ \`date\` 100%"}` }
    const tokens = room.catalogue.cases.map(({ name }) => room.catalogue.find(name)?.authorization)
    const odd = tokens.filter((token) => token !== undefined && !/^[\w .-]+$/.test(token))
    expect(odd.length).toBeGreaterThan(20)
    for (const authorization of [...odd, `it's "$(date)" %s \\n \`date\` \u00e9`]) {
      await inShell(curlCommand(composed, { url, authorization: String(authorization), call: '' }))
      expect(got.pop()).toEqual(['POST', '/orders', authorization, '"k-1"', composed.body])
    }
  })

  it('takes for the same what the same page has sent', async () => {
    const one = { ...GOOD_WRITE, page: 'one' }
    const other = { ...GOOD_WRITE, page: 'other' }
    const first = await room.callers.call(one)
    await room.callers.call(other)
    const retry = await room.callers.call({ ...one, idempotencyKey: 'same' })
    expect(retry.operator.outcome).toBe('replayed')
    expect(retry.answer.text.split('\r\n\r\n')[1]).toBe(first.answer.text.split('\r\n\r\n')[1])
  })

  it.each<[string, object, string]>([
    ['an unknown member', { ...GOOD_READ, path: '/admin' }, 'the input'],
    ['another receiver', { ...GOOD_READ, receiver: 'orders-3' }, 'receiver'],
    ['a caller without a name', { ...GOOD_READ, caller: '' }, 'caller'],
    ['a long text', { ...GOOD_READ, audience: 'a'.repeat(201) }, 'audience'],
    ['permissions that are none', { ...GOOD_READ, permissions: 'orders:read' }, 'permissions'],
    ['an unknown hostile token', { ...GOOD_READ, hostileToken: 'of nobody' }, 'hostile token'],
    [
      'a token of a caller that sent none',
      { ...GOOD_READ, caller: 'ada', isTokenReused: true },
      'ada',
    ],
  ])('is refused in one line when it has %s', async (_, input, part) => {
    const failure = await room.callers.call(input).catch((error: Error) => error)
    expect(failure).toMatchObject({ name: 'ActionError' })
    expect((failure as Error).message).toContain(part)
    expect((failure as Error).message).not.toContain('\n')
  })
})

describe('many calls', () => {
  it('are sent once at a time', async () => {
    const first = room.callers.manyCalls({ order: GOOD_READ, how: 'twenty-at-once' })
    await expect(
      room.callers.manyCalls({ order: GOOD_READ, how: 'twenty-at-once' }),
    ).rejects.toMatchObject({ name: 'ActionError' })
    await first
  })
})

describe('a receiver that fails', () => {
  async function serve(onConnection: (socket: Socket) => void): Promise<string> {
    const server = createServer(onConnection).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    onTestFinished(() => void server.close())
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const ask = (url: string, limitMs = 5000) =>
    exchange({ url, request: Buffer.from('GET / HTTP/1.1\r\n\r\n'), limitMs })

  it.each<[string, (socket: Socket) => void, RegExp]>([
    ['cuts at once', (socket) => socket.destroy(), /^the connection was cut/],
    [
      'cuts in the middle',
      (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal'),
      /cut after 41 bytes/,
    ],
    ['talks something else', (socket) => socket.end('220 mail ready\r\n\r\n'), /not HTTP/],
    [
      'sends without end',
      (socket) =>
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n${'x'.repeat(70_000)}`),
      /larger than 64 KiB/,
    ],
  ])('is shown when it %s', async (_, serving, failure) => {
    const { answer } = await ask(
      await serve((socket) => {
        socket.on('error', () => {})
        serving(socket)
      }),
    )
    expect(answer).toMatchObject({ failure: expect.stringMatching(failure) })
  })

  it('is shown when it is silent, for no longer than the limit', async () => {
    const { answer } = await ask(await serve(() => {}), 60)
    expect(answer).toMatchObject({ failure: 'nobody answered within 0.06 s', text: '' })
    expect(answer.milliseconds).toBeLessThan(2000)
  })

  it.each([
    ['of a length', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'],
    ['in chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
  ])('need not close the connection after an answer %s', async (_, text) => {
    const url = await serve((socket) => void socket.on('error', () => {}).write(text))
    expect((await ask(url)).answer).toMatchObject({ status: 200, text, bytes: text.length })
  })

  it('is shown when nobody listens, and reached by no step', async () => {
    const other = await openRoomHere()
    onTestFinished(other.close)
    await other.receivers.stop('orders-1')
    const { answer, operator } = await other.callers.call(GOOD_READ)
    expect(answer).toMatchObject({ failure: 'orders-1 was killed: the connection was refused' })
    expect(operator).toMatchObject({ outcome: 'failed', events: [] })
    expect(operator.steps.every(({ state }) => state === 'not-reached')).toBe(true)
    const many = await other.callers.manyCalls({ order: GOOD_READ, how: 'twenty-at-once' })
    expect(many.answers.map(({ calls }) => calls)).toEqual([10, 10])
  })
})
