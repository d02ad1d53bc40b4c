import type { RequestHandler } from 'express'
import { acceptOneOf, requirePermissions, ServiceAuthError, serviceOf } from 'express-service-auth'
import { describe, expect, it, vi } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { ignoreErrors } from '../../support/receiver/own-error.js'
import { startReceiver } from '../../support/receiver/receiver.js'
import {
  bearerOfService,
  choice,
  failure,
  gateFor,
  now,
  service,
  walk,
  watchRejections,
} from './walk-gate.js'

watchRejections()

describe.each(EXPRESS_MAJORS)('what acceptOneOf has accepted, on $major', ({ express }) => {
  it('req.credential shows the same, and gives nobody any right', async () => {
    const gate = gateFor(choice({ identity: () => ({ id: 7 }) }))
    const other = gateFor(choice())
    const forge: RequestHandler = (request, _response, next) => {
      request.credential = { name: 'any', identity: 'forged' }
      next()
    }
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(forge, gate),
      handler(request, response) {
        const shown = request.credential
        const isSame = shown === gate.credentialOf(request)
        request.credential = { name: 'any', identity: 'forged' }
        response.json([isSame, gate.credentialOf(request), Object.isFrozen(shown)])
      },
    })
    expect(await receiver.raw()).toContain('[true,{"name":"any","identity":{"id":7}},true]')
    const open = await startReceiver({
      express,
      mount: (app) => app.use(forge),
      handler: (request) => void other.credentialOf(request),
    })
    await open.raw()
    expect(open.errors).toMatchObject([{ name: 'ServiceAuthError', code: 'wrong_wiring' }])
  })

  it('each of several has a verdict of its own', async () => {
    const one = gateFor(choice({ name: 'one', identity: () => 1 }))
    const two = gateFor(choice({ name: 'two', identity: () => 2 }))
    const absent = gateFor(choice())
    const receiver = await startReceiver({
      express,
      mount(app) {
        const router = express.Router({ mergeParams: true })
        const inner = express.Router()
        router.use('/b', two, inner)
        app.use('/a', one, router)
        inner.get('/c', (request, response) => {
          expect(() => absent.credentialOf(request)).toThrow(ServiceAuthError)
          response.json([one.credentialOf(request), two.credentialOf(request), request.credential])
        })
      },
    })
    const { text } = await receiver.call(undefined, { path: '/a/b/c' })
    const [first, second] = [
      { name: 'one', identity: 1 },
      { name: 'two', identity: 2 },
    ]
    expect(JSON.parse(text)).toEqual([first, second, second])
  })

  it('an error handler that goes on finds nothing accepted', async () => {
    const fails = [
      gateFor({ ...service(), authorize: now((_, next) => next(failure)) }),
      gateFor({
        ...service(),
        identity: () => {
          throw failure
        },
      }),
      gateFor({ ...service(), verify: (_request, _response, next) => next('route') }),
    ]
    for (const gate of fails) {
      const seen = vi.fn()
      const receiver = await startReceiver({
        express,
        mount(app) {
          app.use(gate, ignoreErrors)
          app.use((request, _response, next) => {
            expect(() => gate.credentialOf(request)).toThrow(ServiceAuthError)
            expect(() => serviceOf(request)).toThrow(ServiceAuthError)
            expect(request.credential).toBeUndefined()
            seen()
            next()
          })
          app.use(requirePermissions('orders:read'))
        },
      })
      await receiver.rawWith(bearerOfService())
      expect(seen).toHaveBeenCalledOnce()
      expect(receiver.handled).toBe(0)
      expect(receiver.errors).toMatchObject([{ code: 'wrong_wiring' }])
    }
  })

  it('another acceptOneOf may be the verifier', async () => {
    const inner = acceptOneOf([choice({ name: 'inner' })])
    const { outcome, told } = await walk(
      express,
      choice({
        name: 'outer',
        verify: inner,
        identity: (request) => inner.credentialOf(request),
      }),
    )
    expect(outcome).toBe('passed')
    expect(told).toMatchObject([{ credential: 'outer' }])
  })
})
