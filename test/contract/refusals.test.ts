import { memoryStore, requirePermissions, requireSingleUse } from 'express-service-auth'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import {
  FORBIDDEN,
  INVALID_TOKEN,
  UNAVAILABLE,
  withoutBody,
} from '../support/receiver/refusal-bytes.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

const bearer = (token: string): string => `Authorization: Bearer ${token}`

describe.each(EXPRESS_MAJORS)('the refusals, on $major', ({ express }) => {
  it('are one 403 for a caller that is not approved, is denied or lacks a permission', async () => {
    const receiver = await startReceiver({
      express,
      mount(app) {
        const callers = { billing: ['orders:read'], reporting: [], banned: ['orders:read'] }
        const denylist = { callers: ['banned'] }
        app.use(authFor(issuer.policy({ callers, denylist })))
        app.use('/read', requirePermissions('orders:read'))
        app.use('/write', requirePermissions('orders:read', 'orders:write'))
      },
    })
    const ask = (claims: object, path = '/read', method = 'GET'): Promise<string> =>
      receiver.raw({ path, method, headers: [bearer(issuer.token({ ...claims }))] })
    expect(await ask({})).toContain(' 200 OK')
    expect(await ask({ sub: 'stranger' })).toBe(FORBIDDEN)
    expect(await ask({ sub: 'banned' })).toBe(FORBIDDEN)
    expect(await ask({ sub: 'reporting' })).toBe(FORBIDDEN)
    expect(await ask({ permissions: [] })).toBe(FORBIDDEN)
    expect(await ask({ permissions: ['orders:rea', 'orders:read '] })).toBe(FORBIDDEN)
    expect(await ask({}, '/write')).toBe(FORBIDDEN)
    expect(await ask({}, '/write', 'HEAD')).toBe(withoutBody(FORBIDDEN))
    expect(receiver.handled).toBe(1)
  })

  it('are the same 403 for what the policy requires of everybody', async () => {
    const permissions = ['orders:read', 'orders:write']
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(issuer.policy({ permissions }))),
    })
    expect(await receiver.rawWith(`Bearer ${issuer.token()}`)).toContain(' 200 OK')
    const short = issuer.token({ permissions: ['orders:write'] })
    expect(await receiver.rawWith(`Bearer ${short}`)).toBe(FORBIDDEN)
    // What ends in a 401 comes first.
    const expired = issuer.token({ permissions: [], exp: 1 })
    expect(await receiver.rawWith(`Bearer ${expired}`)).toBe(INVALID_TOKEN)
  })

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

  it('are the same 503 when the store of used tokens fails, and nothing has run', async () => {
    const failing = () => Promise.reject(Object.assign(new Error('down'), { status: 401 }))
    const throwing = (): never => {
      throw new Error('down')
    }
    for (const consume of [failing, throwing]) {
      const receiver = await startReceiver({
        express,
        mount: (app) => app.use(authFor(issuer.policy()), requireSingleUse({ store: { consume } })),
      })
      expect(await receiver.rawWith(`Bearer ${issuer.token()}`)).toBe(UNAVAILABLE)
      expect(receiver.handled).toBe(0)
    }
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

  it('are one 401 for a replay and for a token that cannot be used once', async () => {
    const store = memoryStore()
    onTestFinished(() => store.close())
    const receiver = await startReceiver({
      express,
      mount: (app) =>
        app.use(
          authFor(issuer.policy({ callers: ['billing', 'reporting'] })),
          requireSingleUse({ store }),
        ),
    })
    const ask = (claims: object): Promise<string> =>
      receiver.rawWith(`Bearer ${issuer.token({ ...claims })}`)
    const used = issuer.token({ jti: 'one' })
    expect(await receiver.rawWith(`Bearer ${used}`)).toContain(' 200 OK')
    expect(await receiver.rawWith(`Bearer ${used}`)).toBe(INVALID_TOKEN)
    expect(await ask({ jti: 'one', exp: Math.floor(Date.now() / 1000) + 99 })).toBe(INVALID_TOKEN)
    expect(await ask({ jti: 'one', sub: 'reporting' })).toContain(' 200 OK')
    expect(await ask({ jti: undefined })).toBe(INVALID_TOKEN)
    expect(await ask({ jti: '' })).toBe(INVALID_TOKEN)
    expect(await ask({ jti: 'x'.repeat(257) })).toBe(INVALID_TOKEN)
    expect(await ask({ jti: 'x'.repeat(256) })).toContain(' 200 OK')
    expect(await ask({ jti: '__proto__' })).toContain(' 200 OK')
    expect(await ask({ jti: '__proto__' })).toBe(INVALID_TOKEN)
    expect(receiver.handled).toBe(4)
  })
})
