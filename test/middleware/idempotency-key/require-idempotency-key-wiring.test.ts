import type { ErrorRequestHandler, RequestHandler } from 'express'
import {
  memoryStore,
  requireAnyPermission,
  requireIdempotencyKey,
  requirePermissions,
  requireSingleUse,
  type ServiceAuthError,
  serviceAuth,
} from 'express-service-auth'
import { describe, expect, it, onTestFinished } from 'vitest'
import { issuer } from '../../support/issuer/issuer.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import type { Receiver } from '../../support/receiver/open-receiver.js'
import { type Call, call, newKey } from '../../support/receiver/order-calls.js'
import type { OrdersOptions } from '../../support/receiver/order-receiver.js'
import { expectOwnError } from '../../support/receiver/own-error.js'
import { startOrders } from '../../support/receiver/receiver.js'
import { serve } from '../../support/receiver/serve.js'
import { type WatchedStore, watchedStore } from '../../support/stores/watched-store.js'
import { throwing } from '../../support/throwing.js'

describe.each(EXPRESS_MAJORS)('A programming error about the key, $major', ({ express }) => {
  let store: WatchedStore
  const start = (more: Partial<OrdersOptions> = {}): Promise<Receiver> => {
    store = watchedStore(memoryStore())
    store.fail('reserve', more.inner === undefined)
    return startOrders({ express, store, handler: (_req, res) => void res.json({}), ...more })
  }
  const expectFault = async (
    receiver: Receiver,
    request: Call,
    message: RegExp,
    code = 'wrong_wiring',
  ) => {
    const answer = await call(receiver.port, request)
    expect(answer.status).toBe(500)
    const [error] = receiver.errors.slice(-1) as ServiceAuthError[]
    expectOwnError(error, { code, message: expect.stringMatching(message) })
    expect(receiver.handled).toBe(0)
    return error
  }

  /** Each with and without a key: it comes before the 400, and before a store that is down. */
  const requests = (given: Call = {}): Call[] => [{ ...given }, { ...given, key: newKey() }]

  it('is a body that nobody has read', async () => {
    const receiver = await start({ parsers: [] })
    for (const request of requests({ body: '{"a":1}' })) {
      await expectFault(receiver, request, /body parse/)
    }
  })

  it('is a body with what JSON cannot hold', async () => {
    for (const made of [undefined, new Date(Number.NaN), new Map(), 5n, [() => 1]]) {
      const receiver = await start({
        parsers: [
          (req, _res, next) => {
            req.on('end', () => next()).resume()
            req.body = made
          },
        ],
      })
      await expectFault(receiver, { key: newKey(), body: 'x' }, /fingerprint/)
    }
  })

  it('is an operation or a fingerprint that gives no string, or throws', async () => {
    const nothing = (() => undefined) as unknown as () => string
    const promise = (async () => 'late') as unknown as () => string
    const rejected = (async () => {
      throw new Error('late')
    }) as unknown as () => string
    for (const give of [nothing, promise, rejected]) {
      for (const option of ['operation', 'fingerprint']) {
        const receiver = await start({ options: { [option]: give } })
        for (const request of requests()) {
          await expectFault(receiver, request, new RegExp(`${option} must return a string`))
        }
      }
    }
    const first = Object.assign(new Error('own'), { status: 400 })
    const receiver = await start({ options: { operation: throwing(first) } })
    const error = await expectFault(receiver, {}, /could not decide/, 'internal')
    expect(error?.cause).toBe(first)
  })

  it('is a key that is in headers only, as adapters and apps may put it there', async () => {
    const given = newKey()
    const receiver = await start({
      parsers: [
        (req, _res, next) => {
          req.headers['idempotency-key'] = given
          next()
        },
      ],
    })
    await expectFault(receiver, {}, /idempotency-key.*rawHeaders/)
    // One that came on the wire counts, whatever became of the other form.
    expect((await call(receiver.port, { key: newKey() })).status).toBe(503)
  })

  it('is no serviceAuth before it, and no route and no operation', async () => {
    const errors: Error[] = []
    const app = express().set('env', 'test')
    app.post('/bare', requireIdempotencyKey({ store: memoryStore() }))
    app.use(
      '/mounted',
      serviceAuth(issuer.policy()),
      requireIdempotencyKey({ store: memoryStore() }),
    )
    const named = requireIdempotencyKey({ store: memoryStore(), operation: 'named' })
    app.use('/named', serviceAuth(issuer.policy()), named, (_req, res) => void res.json({}))
    const answerError: ErrorRequestHandler = (error, _req, res, _next) => {
      errors.push(error)
      res.status(500).end()
    }
    app.use(answerError)
    const served = await serve(app)
    onTestFinished(served.close)
    expect((await call(served.port, { path: '/bare' })).status).toBe(500)
    expect((await call(served.port, { path: '/mounted' })).status).toBe(500)
    expect(errors.map(({ message }) => message)).toEqual([
      expect.stringContaining('needs a serviceAuth before it'),
      expect.stringContaining('option operation'),
    ])
    expect((await call(served.port, { path: '/named', key: newKey() })).status).toBe(200)
  })

  it.each<[string, () => RequestHandler]>([
    ['a second key', () => requireIdempotencyKey({ store })],
    ['serviceAuth', () => serviceAuth(issuer.policy())],
    ['requirePermissions', () => requirePermissions('orders:write')],
    ['requireAnyPermission', () => requireAnyPermission('orders:write')],
    ['requireSingleUse', () => requireSingleUse({ store: memoryStore() })],
  ])('is %s after it, and the key is released', async (_name, after) => {
    let isWrong = true
    const receiver = await start({
      inner: [(req, res, next) => (isWrong ? after()(req, res, next) : next())],
    })
    const key = newKey()
    await expectFault(receiver, { key }, /before|second/)
    await expectFault(receiver, { key }, /before|second/)
    expect(store.endings).toEqual([
      { type: 'released', answer: true },
      { type: 'released', answer: true },
    ])
    isWrong = false
    expect((await call(receiver.port, { key })).status).toBe(200)
  })

  it('comes before a missing key, which comes before the store', async () => {
    const receiver = await start()
    expect((await call(receiver.port, { key: undefined })).status).toBe(400)
    expect((await call(receiver.port, { key: newKey() })).status).toBe(503)
  })

  it('is a response that somebody else has begun while the key was being reserved', async () => {
    const receiver = await start({
      inner: [],
      outer: [
        (_req, res, next) => {
          void store.asked('reserve').then(() => res.status(504).end('timeout'))
          next()
        },
      ],
    })
    const key = newKey()
    const letGo = store.hold('reserve')
    expect((await call(receiver.port, { key })).status).toBe(504)
    letGo()
    await store.asked('settle')
    await new Promise(setImmediate)
    expect(store.endings).toEqual([{ type: 'released', answer: true }])
    expect(receiver.handled).toBe(0)
  })
})
