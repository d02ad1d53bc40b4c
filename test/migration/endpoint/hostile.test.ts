import { beforeAll, describe, expect, it } from 'vitest'
import { openExchange } from '../../support/network/raw-exchange.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { FAULT_STATUS } from '../../support/receiver/open-receiver.js'
import { until } from '../../support/until.js'
import { openGatedCore } from './gated-core.js'
import {
  bodyAbout,
  type Endpoint,
  newId,
  OTHER_TOKEN,
  openEndpoint,
  PASSWORD_LOGIN,
  TOKEN,
} from './kit.js'

const core = await openGatedCore()

describe.each(EXPRESS_MAJORS)('hostile requests, on $major', ({ express }) => {
  let endpoint: Endpoint
  beforeAll(async () => {
    endpoint = await openEndpoint(core, { express })
  })

  const statusOf = async (headers: string[], body: string | Buffer = ''): Promise<number> => {
    const bytes = await endpoint.raw({ method: 'POST', path: '/migrate', headers, body })
    return Number(bytes.slice('HTTP/1.1 '.length, 12))
  }
  const json = (body: string | Buffer, ...more: string[]) =>
    statusOf(
      [
        `Authorization: Bearer ${TOKEN}`,
        'Content-Type: application/json',
        `Content-Length: ${Buffer.byteLength(body)}`,
        ...more,
      ],
      Buffer.from(body),
    )
  const good = () => JSON.stringify(bodyAbout(newId()))

  it('the scheme has no case, the token has; one header, and one token in it', async () => {
    const with_ = (...headers: string[]) => {
      const body = good()
      const length = `Content-Length: ${body.length}`
      return statusOf([...headers, 'Content-Type: application/json', length], body)
    }
    expect(await with_(`Authorization: bearer ${TOKEN}`)).toBe(200)
    expect(await with_(`authorization: BEARER ${TOKEN}`)).toBe(200)
    const wrong = [
      [`Authorization: Bearer ${TOKEN.toUpperCase()}`],
      [`Authorization: Bearer ${TOKEN}`, `Authorization: Bearer ${TOKEN}`],
      [`Authorization: Bearer ${TOKEN}`, 'Authorization: Basic eDp5'],
      [`Authorization: Bearer ${TOKEN},${OTHER_TOKEN}`],
      [`Authorization: Bearer  ${TOKEN}`],
      [`Authorization: ${TOKEN}`],
      [`Authorization: Basic ${TOKEN}`],
      [`Authorization: DPoP ${TOKEN}`],
      ['Authorization:'],
      [`Authorization: Bearer ${'x'.repeat(9000)}`],
      [`Proxy-Authorization: Bearer ${TOKEN}`],
      [`Cookie: token=${TOKEN}`],
    ]
    for (const headers of wrong) expect(await with_(...headers)).toBe(401)
  })

  it.each([
    [200, 'application/json; charset=utf-8'],
    [200, 'application/json;charset="UTF-8"'],
    [200, 'Application/JSON ; charset=utf-8'],
    [415, 'application/json; charset=latin1'],
    [415, 'application/json; charset=utf-8; charset=utf-8'],
    [415, 'application/problem+json'],
    [415, 'application/x-www-form-urlencoded'],
    [415, '*/*'],
  ])('gets %i, because only JSON in UTF-8 is read: %s', async (status, type) => {
    const headers = { 'content-type': type }
    expect((await endpoint.post(bodyAbout(newId()), { headers })).status).toBe(status)
  })

  it('one media type, and no coding', async () => {
    expect(await json(good(), 'Content-Type: application/json')).toBe(415)
    expect(await json(good(), 'Content-Encoding: gzip')).toBe(415)
    expect(await json(good(), 'Content-Encoding: identity')).toBe(200)
    const untyped = [`Authorization: Bearer ${TOKEN}`, 'Content-Length: 2']
    expect(await statusOf(untyped, '{}')).toBe(415)
  })

  const about = (more: object) => JSON.stringify({ ...bodyAbout('u'), ...more })
  const identity = { ...PASSWORD_LOGIN, userId: 'u' }
  it.each<[string, string]>([
    ['nothing', ''],
    ['no object', '[]'],
    ['something behind it', `${good()}{}`],
    ['a byte order mark', `\ufeff${good()}`],
    ['deep nesting', '['.repeat(16_000)],
    ['deep nesting in a member', `{"externalUserId":${'{"a":'.repeat(3000)}`],
    ['another member', about({ issuer: 'https://other.example.com/' })],
    ['a prototype', `{"__proto__":{"a":1},${good().slice(1)}`],
    ['a prototype of an identity', good().replace('"provider"', '"__proto__":{},"provider"')],
    ['a member twice', good().replace('{"ext', '{"externalUserId":"x","ext')],
    ['an escaped member twice', good().replace('{"ext', '{"externalUser\\u0049d":"x","ext')],
    ['an identity’s member twice', good().replace('"provider"', '"provider":"x","provider"')],
    ['more in an identity', about({ identities: [{ ...identity, email: 'a@example.com' }] })],
    ['less in an identity', about({ identities: [PASSWORD_LOGIN] })],
    ['no identity', about({ identities: [] })],
    ['an empty text', about({ identities: [{ ...identity, userId: '' }] })],
    ['21 identities', about({ identities: Array(21).fill(identity) })],
    ['a long text', about({ identities: [{ ...identity, userId: 'x'.repeat(257) }] })],
    ['an id of 129 characters', about({ externalUserId: 'x'.repeat(129) })],
    ['an id that the core would trim', about({ externalUserId: ' u' })],
    ['an id that is no text for the core', about({ externalUserId: '\u2003' })],
    ['an id with U+0000', about({ externalUserId: 'u\0' })],
    ['half of a character', good().replace('user-', '\\ud800')],
    ['no organization but null', about({ organizationId: null })],
  ])('a body with %s: 400', async (_, body) => {
    expect(await json(body)).toBe(400)
  })

  it('the largest form passes, and an id that ends in a space that the core keeps', async () => {
    const externalUserId = 'x'.repeat(128)
    const identities = Array(20).fill({ ...PASSWORD_LOGIN, userId: externalUserId })
    expect(await json(JSON.stringify({ externalUserId, identities }))).toBe(200)
    expect(await json(JSON.stringify(bodyAbout(`${newId()}\u00a0`)))).toBe(200)
  })

  it('bytes that are no UTF-8: 400', async () => {
    const [before = '', after = ''] = good().split('user-')
    const wrong = Buffer.from([0xc3, 0x28])
    expect(await json(Buffer.concat([Buffer.from(before), wrong, Buffer.from(after)]))).toBe(400)
  })

  it('a body that grows without end: 413 as soon as it is too large', async () => {
    const exchange = openExchange(endpoint.port)
    exchange.send({
      method: 'POST',
      path: '/migrate',
      headers: [
        `Authorization: Bearer ${TOKEN}`,
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
      ],
    })
    const chunk = `1000\r\n${'x'.repeat(0x1000)}\r\n`
    const sender = setInterval(() => exchange.socket.write(chunk), 1)
    await until('the refusal has come', async () => exchange.received() !== '')
    expect(exchange.received()).toMatch(/^HTTP\/1\.1 413 /)
    clearInterval(sender)
    // What follows is let go, and the connection serves on.
    exchange.socket.write('0\r\n\r\n')
    exchange.send({ method: 'PUT', path: '/migrate', headers: [`Authorization: Bearer ${TOKEN}`] })
    await until('the next answer has come', async () => exchange.received().includes(' 405 '))
    exchange.socket.destroy()
  })

  it('a body that does not end in time: 503; one that is cut off: nothing is made', async () => {
    const hasty = await openEndpoint(core, { express, options: { timeoutMs: 400 } })
    const send = ({ port }: Endpoint) => {
      const exchange = openExchange(port)
      const headers = [
        `Authorization: Bearer ${TOKEN}`,
        'Content-Type: application/json',
        'Content-Length: 500',
      ]
      exchange.send({ method: 'POST', path: '/migrate', headers, body: '{"externalUserId":"slow"' })
      return exchange
    }
    const slow = send(hasty)
    await until('the refusal has come', async () => slow.received() !== '')
    expect(slow.received()).toMatch(/^HTTP\/1\.1 503 /)
    slow.socket.destroy()
    const before = endpoint.decisions.length
    const cut = send(endpoint)
    await new Promise((resolve) => setTimeout(resolve, 50))
    cut.socket.destroy()
    await until('it is told', async () => endpoint.decisions.length > before)
    expect(hasty.decisions).toMatchObject([{ reason: 'body_unfinished', status: 503 }])
    expect(endpoint.decisions.slice(before)).toMatchObject([{ reason: 'body_cut_off' }])
    expect([...hasty.errors, ...endpoint.errors]).toEqual([])
  })

  it('a body that somebody has read before: next(error), after the token', async () => {
    const behindParser = await openEndpoint(core, { express, before: [express.json()] })
    expect((await behindParser.post(bodyAbout(newId()))).status).toBe(FAULT_STATUS)
    expect((await behindParser.post(bodyAbout(newId()), { token: undefined })).status).toBe(401)
    const [error] = behindParser.errors
    expect(error).toMatchObject({ name: 'ServiceAuthError', code: 'wrong_wiring' })
    for (const member of ['status', 'statusCode', 'headers'])
      expect(error).not.toHaveProperty(member)
    expect(behindParser.decisions).toHaveLength(1)
  })
})
