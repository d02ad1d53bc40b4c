import { type DecisionEvent, requirePermissions, serviceOf } from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { FAULT_STATUS } from '../support/receiver/open-receiver.js'
import { ignoreErrors } from '../support/receiver/own-error.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { FORBIDDEN, INVALID_TOKEN } from '../support/receiver/refusal-bytes.js'
import { throwing } from '../support/throwing.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

describe.each(EXPRESS_MAJORS)('several serviceAuth on one request, on $major', ({ express }) => {
  it('must all pass', async () => {
    const receiver = await startReceiver({
      express,
      mount(app) {
        app.use(authFor(issuer.policy({ callers: ['billing', 'reporting'] })))
        app.use('/callers', authFor(issuer.policy({ callers: ['reporting'] })))
        app.use('/audience', authFor(issuer.policy({ audience: 'payments' })))
      },
    })
    const ask = (path: string, sub = 'billing'): Promise<string> =>
      receiver.raw({ path, headers: [`Authorization: Bearer ${issuer.token({ sub })}`] })
    expect(await ask('/')).toContain(' 200 OK')
    expect(await ask('/callers', 'reporting')).toContain(' 200 OK')
    expect(await ask('/callers')).toBe(FORBIDDEN)
    expect(await ask('/audience')).toBe(INVALID_TOKEN)
  })

  it('leave the permissions that every one of them grants, in either order', async () => {
    const wide = { callers: { billing: ['orders:read', 'orders:write'] } }
    const narrow = { callers: { billing: ['orders:write', 'orders:archive'] } }
    for (const order of [
      [wide, narrow],
      [narrow, wide],
      [{}, narrow],
      [narrow, {}],
    ]) {
      const receiver = await startReceiver({
        express,
        mount(app) {
          for (const policy of order) app.use(authFor(issuer.policy(policy)))
          app.use('/read', requirePermissions('orders:read'))
          app.use('/write', requirePermissions('orders:write'))
        },
        handler: (request, response) => {
          response.json([...serviceOf(request).permissions])
        },
      })
      expect((await receiver.call(issuer.token(), { path: '/read' })).status).toBe(403)
      const written = await receiver.call(issuer.token(), { path: '/write' })
      expect(JSON.parse(written.text)).toEqual(['orders:write'])
    }
  })

  it('identify the caller by the last of them', async () => {
    const receiver = await startReceiver({
      express,
      mount: (app) =>
        app.use(authFor(issuer.policy()), authFor(issuer.policy({ callers: { billing: [] } }))),
      handler(request, response) {
        expect(request.service).toBe(serviceOf(request))
        response.json({
          frozen: Object.isFrozen(request.service),
          size: request.service?.permissions.size,
        })
      },
    })
    expect(JSON.parse((await receiver.call(issuer.token())).text)).toEqual({
      frozen: true,
      size: 0,
    })
  })

  it('give no rights by the first when the second could not decide', async () => {
    const broken = issuer.policy({
      tokenCache: false,
      clock: throwing(new Error('no clock')),
      jwksUri: undefined,
      keySet: issuer.keySet,
    })
    const receiver = await startReceiver({
      express,
      mount(app) {
        app.use(authFor(issuer.policy()), authFor(broken), ignoreErrors)
        app.use(requirePermissions('orders:read'))
      },
    })
    expect((await receiver.call(issuer.token())).status).toBe(FAULT_STATUS)
    expect(receiver.handled).toBe(0)
  })

  it('tell an observer that they share once of each decision', async () => {
    const events: DecisionEvent[] = []
    const onDecision = (event: DecisionEvent): number => events.push(event)
    const auth = authFor(issuer.policy({ onDecision }))
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(auth, auth, requirePermissions('orders:read')),
    })
    await receiver.call(issuer.token())
    expect(events.map(({ by }) => by)).toEqual(['serviceAuth', 'serviceAuth', 'requirePermissions'])
  })
})
