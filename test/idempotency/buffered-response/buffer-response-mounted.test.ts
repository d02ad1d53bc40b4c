import type { ErrorRequestHandler, Express } from 'express'
import { memoryStore, requireIdempotencyKey, serviceAuth, serviceOf } from 'express-service-auth'
import { afterEach, describe, expect, it } from 'vitest'
import { issuer } from '../../support/issuer/issuer.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { serve } from '../../support/receiver/serve.js'

/*
 * Express gives a response the prototype of the app that it has come to, and the one before when it
 * leaves a mounted app: of another copy of Express altogether, where an app was written with one.
 */
describe.each(EXPRESS_MAJORS)('A response in an app that is mounted in one of $major', (outer) => {
  let close = async (): Promise<void> => {}
  afterEach(() => close())

  async function start(
    build: (app: Express, key: ReturnType<typeof requireIdempotencyKey>) => void,
  ) {
    const app = outer.express().set('env', 'test') as Express
    app.use(serviceAuth(issuer.policy()))
    build(app, requireIdempotencyKey({ store: memoryStore(), operation: 'write' }))
    const served = await serve(app)
    close = served.close
    return served
  }

  it.each(EXPRESS_MAJORS)('is kept when its handler is an app of $major', async (inner) => {
    let runs = 0
    const handler = inner.express() as Express
    handler.use((request, response) => {
      runs += 1
      response.status(201).json({ by: request.service?.name, same: serviceOf(request).name })
    })
    const { port } = await start((app, key) => {
      app.use('/orders', outer.express.json(), key, handler)
    })
    const sent = newKey()
    const [first, second] = [await call(port, { key: sent }), await call(port, { key: sent })]
    expect(first.status).toBe(201)
    expect(JSON.parse(first.body.toString())).toEqual({ by: 'billing', same: 'billing' })
    expect([second.status, second.body]).toEqual([first.status, first.body])
    expect(second.headers['idempotent-replayed']).toEqual(['true'])
    expect(runs).toBe(1)
  })

  it.each(EXPRESS_MAJORS)(
    'is kept when the outer app answers an error of one of $major',
    async (inner) => {
      let runs = 0
      const mounted = inner.express() as Express
      const answer: ErrorRequestHandler = (_error, _request, response, _next) => {
        response.status(418).json({ outer: true })
      }
      const { port } = await start((app, key) => {
        mounted.post('/orders/:id', inner.express.json(), key, (_request, _response, next) => {
          runs += 1
          next(new Error('the handler'))
        })
        app.use(mounted)
        app.use(answer)
      })
      const sent = newKey()
      const [first, second] = [await call(port, { key: sent }), await call(port, { key: sent })]
      expect([first.status, first.body.toString()]).toEqual([418, '{"outer":true}'])
      expect([second.status, second.body]).toEqual([first.status, first.body])
      expect(second.headers['idempotent-replayed']).toEqual(['true'])
      expect(runs).toBe(1)
    },
  )
})
