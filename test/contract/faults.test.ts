import { requireAnyPermission, requirePermissions } from 'express-service-auth'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { FAULT_STATUS } from '../support/receiver/open-receiver.js'
import { expectOwnError, ignoreErrors } from '../support/receiver/own-error.js'
import { authFor, startBehind, startReceiver } from '../support/receiver/receiver.js'
import { serve } from '../support/receiver/serve.js'
import { throwing } from '../support/throwing.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

const oddError = Object.assign(new Error('no time'), {
  status: 401,
  statusCode: 200,
  headers: { 'www-authenticate': 'Basic' },
})
const BROKEN_CLOCKS: Record<string, () => number> = {
  'that throws': throwing(oddError),
  'that gives NaN': () => Number.NaN,
}

describe.each(EXPRESS_MAJORS)("the receiver's own faults, on $major", ({ express }) => {
  it.each(Object.entries(BROKEN_CLOCKS))(
    'a clock %s is next(error), never an answer',
    async (_name, clock) => {
      for (const keySet of [undefined, issuer.keySet]) {
        const policy = issuer.policy({ clock, jwksUri: undefined, keySet })
        const receiver = await startBehind(express, authFor(policy))
        for (let turn = 0; turn < 2; turn += 1) {
          expect((await receiver.call(issuer.token())).status).toBe(FAULT_STATUS)
        }
        expect(receiver.handled).toBe(0)
        expect(receiver.errors).toHaveLength(2)
        for (const error of receiver.errors) expectOwnError(error)
      }
    },
  )

  it('a clock that breaks later is next(error) for remembered tokens too', async () => {
    let clock = Date.now
    const policy = issuer.policy({
      clock: () => clock(),
      jwksUri: undefined,
      keySet: issuer.keySet,
    })
    const receiver = await startBehind(express, authFor(policy))
    const token = issuer.token()
    expect((await receiver.call(token)).status).toBe(200)
    clock = throwing(oddError)
    expect((await receiver.call(token)).status).toBe(FAULT_STATUS)
    expect(receiver.errors[0]).toMatchObject({ cause: oddError, code: 'internal' })
    clock = Date.now
    expect((await receiver.call(token)).status).toBe(200)
  })

  it.each([
    ['verify', 'a token', false],
    ['verify', 'a proof', true],
    ['importKey', 'a proof', true],
    ['digest', 'a proof', true],
  ] as const)('a runtime that fails to %s for %s is next(error)', async (name, _, isRemembered) => {
    const senderConstraint = { dpop: { baseUrls: ['https://orders.test'] } }
    const policy = issuer.policy({ senderConstraint })
    const receiver = await startBehind(express, authFor(policy))
    const { token, proof } = issuer.boundToken()
    const send = (scheme = 'DPoP') => {
      const dpop = proof({ method: 'GET', url: 'https://orders.test/' })
      return receiver.call(undefined, { headers: { authorization: `${scheme} ${token}`, dpop } })
    }
    // Refused for its proof alone, so that the token is known and the key of the proof is not.
    if (isRemembered) expect((await send('Bearer')).status).toBe(401)
    const failing = vi.spyOn(crypto.subtle, name).mockRejectedValueOnce(oddError)
    onTestFinished(() => failing.mockRestore())
    expect((await send()).status).toBe(FAULT_STATUS)
    expect((await send()).status).toBe(200)
    expect(receiver.errors).toHaveLength(1)
    expectOwnError(receiver.errors[0], { code: 'internal', cause: oddError })
  })

  it.each([requirePermissions, requireAnyPermission])(
    '%o without a serviceAuth before it is next(error) with what to do',
    async (guard) => {
      const receiver = await startBehind(express, guard('orders:read'))
      expect((await receiver.call(issuer.token())).status).toBe(FAULT_STATUS)
      const message = expect.stringContaining('serviceAuth')
      expectOwnError(receiver.errors[0], { code: 'wrong_wiring', message })
    },
  )

  it('a serviceAuth on another path does not count', async () => {
    const receiver = await startReceiver({
      express,
      mount(app) {
        app.use('/guarded', authFor(issuer.policy()))
        app.use(requirePermissions('orders:read'))
      },
    })
    expect((await receiver.call(issuer.token(), { path: '/guarded/x' })).status).toBe(200)
    expect((await receiver.call(issuer.token(), { path: '/other' })).status).toBe(FAULT_STATUS)
  })

  it('a serviceAuth that failed does not count, whatever handles the error', async () => {
    const broken = issuer.policy({ clock: () => Number.NaN })
    const receiver = await startReceiver({
      express,
      mount(app) {
        app.use(authFor(broken), ignoreErrors, requirePermissions('orders:read'))
      },
    })
    expect((await receiver.call(issuer.token())).status).toBe(FAULT_STATUS)
    expect(receiver.handled).toBe(0)
  })

  it("Express's own error handler answers 500 for them", async () => {
    const app = express()
    app.set('env', 'test')
    app.use(authFor(issuer.policy({ clock: BROKEN_CLOCKS['that throws'] })))
    const receiver = await startReceiver({ express, mount: (outer) => outer.use(app) })
    await receiver.call(issuer.token())
    expectOwnError(receiver.errors[0])
    const { url, close } = await serve(app)
    onTestFinished(close)
    const reply = await fetch(url, { headers: { authorization: `Bearer ${issuer.token()}` } })
    expect(reply.status).toBe(500)
    expect(reply.headers.has('www-authenticate')).toBe(false)
  })

  it('what a later handler throws comes to Express as it is, once', async () => {
    const thrown = new Error('the handler')
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(issuer.policy()), requirePermissions('orders:read')),
      handler() {
        throw thrown
      },
    })
    const token = issuer.token()
    for (const _remembered of [false, true]) await receiver.call(token)
    expect(receiver.errors).toEqual([thrown, thrown])
  })

  it('a response that has begun before a refusal is next(error)', async () => {
    const auth = authFor(issuer.policy())
    const receiver = await startBehind(express, (request, response, next) => {
      response.end('early')
      auth(request, response, next)
    })
    // The one is refused at once, the other after its verification.
    for (const token of ['x', issuer.token({ exp: 1 })]) {
      expect((await receiver.call(token)).text).toBe('early')
    }
    await vi.waitFor(() => expect(receiver.errors).toHaveLength(2))
    for (const error of receiver.errors) expectOwnError(error)
  })
})
