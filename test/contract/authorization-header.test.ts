import type { Request } from 'express'
import { ServiceAuthError } from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { createTokenForge } from '../../src/testing/hostile/forge.js'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { FAULT_STATUS, type Receiver } from '../support/receiver/open-receiver.js'
import { authFor, startBehind, startReceiver } from '../support/receiver/receiver.js'
import { INVALID_TOKEN, NO_TOKEN, withoutBody } from '../support/receiver/refusal-bytes.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

describe.each(EXPRESS_MAJORS)('the Authorization header, on $major', ({ express }) => {
  const start = (maxHeaderSize?: number): Promise<Receiver> =>
    startReceiver({
      express,
      mount: (app) => app.use(authFor(issuer.policy())),
      ...(maxHeaderSize !== undefined && { maxHeaderSize }),
    })

  it('is missing: the 401 that names no error', async () => {
    const receiver = await start()
    expect(await receiver.raw()).toBe(NO_TOKEN)
    expect(await receiver.raw({ headers: ['Proxy-Authorization: Bearer x'] })).toBe(NO_TOKEN)
  })

  it('is there but empty: the 401 of an invalid token', async () => {
    const receiver = await start()
    for (const line of ['Authorization:', 'Authorization: ', 'Authorization: \t ']) {
      expect(await receiver.raw({ headers: [line] })).toBe(INVALID_TOKEN)
    }
  })

  it('is there twice: refused, whichever of the two is good', async () => {
    const receiver = await start()
    const good = `Authorization: Bearer ${issuer.token()}`
    const others = [good, 'authorization: Bearer x', 'AUTHORIZATION:', 'Authorization: Basic YTpi']
    for (const other of others) {
      expect(await receiver.raw({ headers: [good, other] })).toBe(INVALID_TOKEN)
      expect(await receiver.raw({ headers: [other, 'X-Between: 1', good] })).toBe(INVALID_TOKEN)
    }
    expect(receiver.handled).toBe(0)
  })

  it('may have blanks around its value, which are no part of it', async () => {
    const receiver = await start()
    const line = `Authorization:\t  Bearer ${issuer.token()} \t`
    expect(await receiver.raw({ headers: [line] })).toContain(' 200 OK')
  })

  it('cannot be replaced by a query parameter, a body field or a cookie', async () => {
    const receiver = await start()
    const token = issuer.token()
    const form = `access_token=${token}`
    const attempts = [
      { path: `/?access_token=${token}` },
      { path: `/?authorization=Bearer%20${token}&token=${token}` },
      { headers: [`Cookie: sAccessToken=${token}; access_token=${token}`] },
      { headers: [`X-Authorization: Bearer ${token}`, `X-Access-Token: ${token}`] },
      {
        method: 'POST',
        headers: [
          'Content-Type: application/x-www-form-urlencoded',
          `Content-Length: ${form.length}`,
        ],
        body: form,
      },
    ]
    for (const attempt of attempts) expect(await receiver.raw(attempt)).toBe(NO_TOKEN)
    expect(receiver.handled).toBe(0)
  })

  it('is not found among the trailers', async () => {
    const receiver = await start()
    const headers = ['Transfer-Encoding: chunked', 'Trailer: Authorization']
    const body = `1\r\nx\r\n0\r\nAuthorization: Bearer ${issuer.token()}\r\n\r\n`
    expect(await receiver.raw({ method: 'POST', headers, body })).toBe(NO_TOKEN)
  })

  it('counts as it came on the wire, not as the app has changed it', async () => {
    const token = issuer.token()
    const receiver = await startBehind(
      express,
      (request, _response, next) => {
        request.headers.authorization = `Bearer ${token}`
        next()
      },
      authFor(issuer.policy()),
    )
    expect(await receiver.rawWith('Bearer x')).toBe(INVALID_TOKEN)
    expect(await receiver.raw()).toContain(` ${FAULT_STATUS} `)
    expect(receiver.handled).toBe(0)
  })

  it.each<[string, (request: Request) => void]>([
    ['empty', (request) => Object.assign(request, { rawHeaders: [] })],
    ['missing', (request) => Object.assign(request, { rawHeaders: undefined })],
    ['no list', (request) => Object.assign(request, { rawHeaders: { ...request.headers } })],
  ])('is the fault of the receiver where rawHeaders are %s', async (_how, adapt) => {
    const receiver = await startBehind(
      express,
      (request, _response, next) => {
        adapt(request)
        next()
      },
      authFor(issuer.policy()),
    )
    for (const token of [issuer.token(), 'x', undefined]) {
      const reply = await receiver.call(token)
      expect(reply.status).toBe(FAULT_STATUS)
      expect(reply.headers.get('www-authenticate')).toBe(null)
    }
    expect(receiver.handled).toBe(0)
    expect(receiver.errors).toHaveLength(3)
    for (const error of receiver.errors) {
      expect(error).toBeInstanceOf(ServiceAuthError)
      expect(error).toMatchObject({ code: 'wrong_wiring' })
      expect(String((error as Error).message)).not.toContain('Bearer')
    }
  })

  it('is judged the same under a hostile Host', async () => {
    const receiver = await start()
    for (const host of ['attacker.invalid', 'localhost:99999', '[::1]', "x' OR '1'='1", '@', '']) {
      expect(await receiver.raw({ host, headers: ['Authorization: Bearer x'] })).toBe(INVALID_TOKEN)
      const good = [`Authorization: Bearer ${issuer.token()}`, 'X-Forwarded-Host: attacker.invalid']
      expect(await receiver.raw({ host, headers: good })).toContain(' 200 OK')
    }
  })

  it('is demanded of every method, and HEAD gets no body', async () => {
    const receiver = await start()
    for (const method of ['GET', 'POST', 'OPTIONS', 'TRACE', 'PROPFIND']) {
      expect(await receiver.raw({ method })).toBe(NO_TOKEN)
    }
    expect(await receiver.raw({ method: 'HEAD' })).toBe(withoutBody(NO_TOKEN))
    const invalid = { method: 'HEAD', headers: ['Authorization: Bearer x'] }
    expect(await receiver.raw(invalid)).toBe(withoutBody(INVALID_TOKEN))
  })

  it('is refused at any size that the server lets through', async () => {
    const receiver = await start(8 * 1024 * 1024)
    const forge = createTokenForge(issuer)
    const segments = Array.from({ length: 1_000_000 }, () => 'a').join('.')
    const permissions = Array.from({ length: 10_000 }, (_, index) => `p${index}`)
    const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`
    const deepObject = `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`
    const tokens = [
      segments,
      '.'.repeat(1_000_000),
      'A'.repeat(4_000_000),
      forge.withClaims({ permissions }),
      forge.withRawClaim('deep', deep),
      forge.token({ header: `{"deep":${deepObject},"alg":"RS256","kid":"${issuer.kid}"}` }),
      forge.token({ payload: deep }),
      forge.token({ header: deep }),
    ]
    for (const token of tokens)
      expect(await receiver.rawWith(`Bearer ${token}`)).toBe(INVALID_TOKEN)
    expect(receiver.handled).toBe(0)
    expect((await receiver.call(issuer.token())).status).toBe(200)
  })

  it('is refused with nothing that the app had put into the response', async () => {
    const receiver = await startBehind(
      express,
      (_request, response, next) => {
        response.type('html').status(202)
        response.setHeader('Content-Length', '5')
        response.setHeader('Cache-Control', 'public, max-age=3600')
        response.setHeader('WWW-Authenticate', 'Basic')
        next()
      },
      authFor(issuer.policy()),
    )
    expect(await receiver.rawWith('Bearer x')).toBe(INVALID_TOKEN)
  })
})
