import type { Request, RequestHandler } from 'express'
import {
  acceptOneOf,
  type DecisionEvent,
  memoryStore,
  requireIdempotencyKey,
  requirePermissions,
  ServiceAuthError,
  serviceOf,
} from 'express-service-auth'
import { describe, expect, it, vi } from 'vitest'
import { issuer } from '../../support/issuer/issuer.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { FAULT_STATUS } from '../../support/receiver/open-receiver.js'
import { ignoreErrors } from '../../support/receiver/own-error.js'
import { authFor, startBehind, startReceiver } from '../../support/receiver/receiver.js'
import { throwing } from '../../support/throwing.js'
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
        identity: throwing(failure),
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

describe.each(EXPRESS_MAJORS)('a service behind acceptOneOf, on $major', ({ express }) => {
  const noToken = (request: Request) => request.headers.authorization === undefined

  it('requirePermissions works for a service, and is a fault for everybody else', async () => {
    const gate = gateFor(service(), choice({ presented: noToken }))
    const receiver = await startBehind(express, gate, requirePermissions('orders:read'))
    expect(await receiver.rawWith(bearerOfService())).toContain(' 200 OK')
    const without = issuer.token({ permissions: [] })
    expect(await receiver.rawWith(`Bearer ${without}`)).toContain(' 403 ')
    expect(receiver.errors).toEqual([])
    expect(await receiver.raw()).toContain(` ${FAULT_STATUS} `)
    expect(receiver.errors).toMatchObject([{ code: 'wrong_wiring' }])
    expect(receiver.handled).toBe(1)
  })

  it('tells of a service who it is, and of others what they are called', async () => {
    const told: DecisionEvent[] = []
    const gate = acceptOneOf([service(), choice({ presented: noToken })], {
      onDecision: (event) => told.push(event),
    })
    const mark: RequestHandler = (request, _response, next) => {
      Object.assign(request, { id: 'r-1' })
      next()
    }
    const receiver = await startBehind(express, mark, gate)
    await receiver.rawWith(bearerOfService())
    await receiver.raw()
    await receiver.rawWith('Bearer garbage')
    const accepted = { outcome: 'accepted', by: 'acceptOneOf', requestId: 'r-1' }
    const caller = { caller: 'billing', keyId: issuer.kid, confirmation: 'none' }
    expect(told).toEqual([
      { ...accepted, credential: 'service', ...caller },
      { ...accepted, credential: 'any' },
    ])
    expect(told.every(Object.isFrozen)).toBe(true)
  })

  it('a service has its key reserved in authorize, and a check after the key is a fault', async () => {
    const idempotent = requireIdempotencyKey({ store: memoryStore(), operation: 'order' })
    const gate = gateFor(
      { ...service(), authorize: [requirePermissions('orders:read'), idempotent] },
      choice({ presented: noToken }),
    )
    const outer = gateFor(service())
    let runs = 0
    const receiver = await startReceiver({
      express,
      mount(app) {
        app.use(gate)
        app.use('/twice', outer)
      },
      handler: (_request, response) => void response.json({ run: ++runs }),
    })
    const ask = (path: string, key: string) =>
      receiver.call(issuer.token(), { path, headers: { 'idempotency-key': key } })
    expect((await ask('/', 'key-one-1')).text).toBe('{"run":1}')
    expect((await ask('/', 'key-one-1')).text).toBe('{"run":1}')
    expect((await receiver.call()).text).toBe('{"run":2}')
    for (let time = 0; time < 2; time += 1) {
      expect((await ask('/twice', 'key-two-2')).status).toBe(FAULT_STATUS)
    }
    const message = expect.stringContaining('acceptOneOf comes after requireIdempotencyKey')
    const fault = expect.objectContaining({ code: 'wrong_wiring', message })
    expect(receiver.errors).toEqual([fault, fault])
  })

  it('serviceOf and credentialOf agree on a service', async () => {
    const auth = authFor(issuer.policy())
    const presented = () => true
    const gate = acceptOneOf([{ name: 'service', presented, verify: auth }])
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(gate),
      handler(request, response) {
        const { name, identity } = gate.credentialOf(request)
        response.json({
          name,
          isSame: identity === serviceOf(request) && identity === request.service,
        })
      },
    })
    expect(await receiver.rawWith(bearerOfService())).toContain('{"name":"service","isSame":true}')
  })
})
