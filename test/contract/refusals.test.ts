import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { INVALID_TOKEN, UNAVAILABLE, withoutBody } from '../support/receiver/refusal-bytes.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

const bearer = (token: string): string => `Authorization: Bearer ${token}`

describe.each(EXPRESS_MAJORS)('the refusals, on $major', ({ express }) => {
  it('are one 503 while the key set is unreachable, whatever the token', async () => {
    const own = await createTestIssuer()
    onTestFinished(() => own.close())
    own.down()
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(own.policy())),
    })
    const tokens = [own.token(), own.token({ exp: 1 }), own.token({}, { kid: 'unknown' })]
    for (const token of tokens) expect(await receiver.rawWith(`Bearer ${token}`)).toBe(UNAVAILABLE)
    const head = { method: 'HEAD', headers: [bearer(own.token())] }
    expect(await receiver.raw(head)).toBe(withoutBody(UNAVAILABLE))
    // What needs no key to be refused is refused.
    expect(await receiver.rawWith('Bearer x')).toBe(INVALID_TOKEN)
    expect(receiver.handled).toBe(0)
    expect(receiver.errors).toEqual([])
  })

  it('carry nothing that the app had put into the response for its own answer', async () => {
    const receiver = await startReceiver({
      express,
      mount(app) {
        app.use((_request, response, next) => {
          response.type('html').status(202)
          response.setHeader('Content-Length', '5')
          response.setHeader('Cache-Control', 'public, max-age=3600')
          response.setHeader('WWW-Authenticate', 'Basic')
          next()
        })
        app.use(authFor(issuer.policy()))
      },
    })
    const reply = await receiver.call('x')
    expect(reply.status).toBe(401)
    expect(reply.headers.get('content-type')).toBe('application/problem+json')
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(reply.headers.get('www-authenticate')).toBe(
      'Bearer realm="service", error="invalid_token"',
    )
    expect(JSON.parse(reply.text)).toEqual({
      type: 'about:blank',
      title: 'Unauthorized',
      status: 401,
    })
  })
})
