import type { Express, NextFunction, Request, RequestHandler, Response } from 'express'
import {
  acceptOneOf,
  type Choice,
  type DecisionEvent,
  memoryStore,
  requireIdempotencyKey,
  requirePermissions,
  ServiceAuthError,
  serviceCredential,
  serviceOf,
} from 'express-service-auth'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { EXPRESS_MAJORS, type ExpressModule } from '../support/express-majors.js'
import { issuer } from '../support/issuer.js'
import { FAULT_STATUS } from '../support/open-receiver.js'
import { authFor, type Receiver, startReceiver } from '../support/receiver.js'
import { INVALID_TOKEN, NO_TOKEN } from '../support/refusal-bytes.js'

const pass: RequestHandler = (_request, _response, next) => next()

/** A choice that is always presented and passes. */
const choice = (change: Partial<Choice> = {}): Choice => ({
  name: 'any',
  presented: () => true,
  verify: pass,
  identity: () => 'somebody',
  ...change,
})

type Outcome = 'passed' | 'fault' | 'invalid' | 'none' | string

interface Walk {
  readonly receiver: Receiver
  readonly told: DecisionEvent[]
  readonly outcome: Outcome
}

async function walk(express: ExpressModule, ...choices: [Choice, ...Choice[]]): Promise<Walk> {
  const told: DecisionEvent[] = []
  const gate = acceptOneOf(choices, { onDecision: (event) => told.push(event) })
  const receiver = await startReceiver({ express, mount: (app: Express) => app.use(gate) })
  const answer = await receiver.raw()
  // What comes later must not come through.
  await new Promise((resolve) => setTimeout(resolve, 5))
  return { receiver, told, outcome: outcomeOf(answer, receiver) }
}

function outcomeOf(answer: string, { handled, errors }: Receiver): Outcome {
  if (handled > 0) return handled === 1 && errors.length === 0 ? 'passed' : `${handled} passes`
  if (errors.length > 1) return `${errors.length} faults`
  if (errors.length === 1) return answer.includes(` ${FAULT_STATUS} `) ? 'fault' : 'fault, answered'
  if (answer === INVALID_TOKEN) return 'invalid'
  if (answer === NO_TOKEN) return 'none'
  return answer.split('\r\n', 1)[0] ?? ''
}

const rejected = vi.fn()
process.on('unhandledRejection', rejected)
afterEach(() => {
  expect(rejected).not.toHaveBeenCalled()
})

const later =
  (act: (response: Response, next: NextFunction) => void): RequestHandler =>
  (_request, response, next) => {
    setTimeout(() => act(response, next), 2)
  }
const now =
  (act: (response: Response, next: NextFunction) => void): RequestHandler =>
  (_request, response, next) =>
    act(response, next)
const inPromise =
  (act: (response: Response, next: NextFunction) => void): RequestHandler =>
  async (_request, response, next) => {
    await new Promise((resolve) => setImmediate(resolve))
    act(response, next)
  }

const WAYS: readonly [string, typeof now][] = [
  ['at once', now],
  ['later', later],
  ['in a promise', inPromise],
]

const failure = Object.assign(new Error('the verifier is ill'), { status: 418 })

describe.each(EXPRESS_MAJORS)('acceptOneOf, on $major', ({ express }) => {
  describe.each(WAYS)('a verifier that %s', (_way, act) => {
    test.each<[string, Parameters<typeof now>[0], Outcome]>([
      ['calls next()', (_, next) => next(), 'passed'],
      ['calls next() twice', (_, next) => [next(), next()], 'fault'],
      ['calls next() and next(error)', (_, next) => [next(), next(failure)], 'fault'],
      ['calls next(error) and next()', (_, next) => [next(failure), next()], 'fault'],
      ["calls next('route')", (_, next) => next('route'), 'fault'],
      ["calls next('router')", (_, next) => next('router'), 'fault'],
      ['calls next(undefined)', (_, next) => next(undefined), 'fault'],
      ['calls next(null)', (_, next) => next(null), 'fault'],
      ['calls next(error)', (_, next) => next(failure), 'fault'],
      ['answers', (response) => response.sendStatus(402), 'HTTP/1.1 402 Payment Required'],
      ['answers and calls next()', (response, next) => [response.end(), next()], 'fault, answered'],
      ['calls next() and answers', (response, next) => [next(), response.end()], 'fault, answered'],
      [
        'begins an answer and calls next()',
        (response, next) => [response.write('x'), next()],
        'fault, answered',
      ],
    ])('%s', async (_what, doIt, expected) => {
      const { outcome, told, receiver } = await walk(express, choice({ verify: act(doIt) }))
      expect(outcome).toBe(expected)
      expect(told.length).toBe(expected === 'passed' ? 1 : 0)
      for (const error of receiver.errors) {
        if (error !== failure) expect(error).toBeInstanceOf(ServiceAuthError)
      }
    })
  })

  test.each<[string, RequestHandler]>([
    [
      'throws',
      now(() => {
        throw failure
      }),
    ],
    ['rejects', () => Promise.reject(failure)],
    [
      'calls next() and throws',
      now((_, next) => {
        next()
        throw failure
      }),
    ],
    [
      'calls next() and rejects',
      inPromise((_, next) => {
        next()
        throw failure
      }),
    ],
    [
      'rejects and calls next() later',
      (_q, _s, next) => {
        setTimeout(next, 2)
        return Promise.reject(failure)
      },
    ],
  ])(
    'a verifier that %s is one fault of ours, with its error as the cause',
    async (_what, verify) => {
      const { outcome, receiver, told } = await walk(express, choice({ verify }))
      expect(outcome).toBe('fault')
      expect(receiver.errors[0]).toBeInstanceOf(ServiceAuthError)
      expect(receiver.errors[0]).toMatchObject({ code: 'internal', cause: failure })
      expect(receiver.errors[0]).not.toHaveProperty('status')
      expect(told).toEqual([])
    },
  )

  test.each(['route', 'router', undefined, null, 0, ''])(
    'a verifier that rejects with %j is a fault',
    async (reason) => {
      const { outcome } = await walk(express, choice({ verify: () => Promise.reject(reason) }))
      expect(outcome).toBe('fault')
    },
  )

  test('passes on what a verifier gives to next as it is, once', async () => {
    const { receiver } = await walk(express, choice({ verify: now((_, next) => next(failure)) }))
    expect(receiver.errors).toEqual([failure])
    expect(receiver.errors[0]).toBe(failure)
  })

  test('judges outside of the verifier, whose try sees nothing of what follows', async () => {
    const thrown = new Error('a handler further down')
    const caught = vi.fn()
    const verify: RequestHandler = async (_request, _response, next) => {
      try {
        next()
      } catch (error) {
        caught(error)
        next(error)
      }
    }
    const gate = acceptOneOf([choice({ verify })])
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(gate),
      handler() {
        throw thrown
      },
    })
    await receiver.call()
    expect(receiver.errors).toEqual([thrown])
    expect(caught).not.toHaveBeenCalled()
  })

  test('decides which credential is presented before any verifier runs', async () => {
    const order: string[] = []
    const named = (name: string, isPresented: boolean) =>
      choice({
        name,
        presented: () => Boolean(order.push(`presented ${name}`)) && isPresented,
        verify: (_request, response) => {
          order.push(`verify ${name}`)
          response.sendStatus(401)
        },
      })
    const { outcome } = await walk(express, named('a', false), named('b', true), named('c', false))
    expect(outcome).toBe('HTTP/1.1 401 Unauthorized')
    expect(order).toEqual(['presented a', 'presented b', 'presented c', 'verify b'])
  })

  test('refuses none and more than one, and asks nobody', async () => {
    const verify = vi.fn()
    const one = choice({ name: 'one', verify })
    const other = choice({ name: 'other', verify })
    const absent = { presented: () => false }
    const none = await walk(express, { ...one, ...absent }, { ...other, ...absent })
    expect(none.outcome).toBe('none')
    const missing = {
      outcome: 'refused',
      reason: 'credentials_missing',
      status: 401,
      by: 'acceptOneOf',
    }
    expect(none.told).toEqual([missing])
    const both = await walk(express, one, other)
    expect(both.outcome).toBe('invalid')
    expect(both.told).toEqual([{ ...missing, reason: 'credentials_ambiguous' }])
    expect(verify).not.toHaveBeenCalled()
  })

  test.each<[string, Partial<Choice>, unknown]>([
    [
      'throws',
      {
        presented: () => {
          throw failure
        },
      },
      failure,
    ],
    ['gives nothing', { presented: (() => undefined) as never }, undefined],
    ['gives a text', { presented: (() => 'yes') as never }, undefined],
    ['gives a promise', { presented: (async () => true) as never }, undefined],
    ['rejects', { presented: (() => Promise.reject(failure)) as never }, undefined],
  ])('a presented that %s is a fault', async (_what, change, cause) => {
    const verify = vi.fn()
    const { outcome, receiver } = await walk(express, choice({ ...change, verify }))
    expect(outcome).toBe('fault')
    expect(receiver.errors[0]).toBeInstanceOf(ServiceAuthError)
    expect((receiver.errors[0] as Error).cause).toBe(cause)
    expect(verify).not.toHaveBeenCalled()
  })

  test.each([undefined, null])('an identity that is %s is the 401', async (nobody) => {
    const authorize = vi.fn()
    const { outcome, told } = await walk(express, choice({ identity: () => nobody, authorize }))
    expect(outcome).toBe('invalid')
    expect(told).toEqual([
      {
        outcome: 'refused',
        reason: 'identity_missing',
        status: 401,
        by: 'acceptOneOf',
        credential: 'any',
      },
    ])
    expect(authorize).not.toHaveBeenCalled()
  })

  test.each([0, '', false, Number.NaN])('an identity that is %j is one', async (identity) => {
    expect((await walk(express, choice({ identity: () => identity }))).outcome).toBe('passed')
  })

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw failure
      },
    ],
    ['gives a promise', async () => 'somebody'],
    ['gives a promise of nobody', async () => undefined],
    ['rejects', () => Promise.reject(failure)],
    // biome-ignore lint/suspicious/noThenProperty: what is tested
    ['gives something thenable', () => ({ then: () => {} })],
    // biome-ignore lint/suspicious/noThenProperty: what is tested
    ['gives a function that is thenable', () => Object.assign(() => {}, { then: () => {} })],
  ])('an identity that %s is a fault', async (_what, identity) => {
    const { outcome, receiver, told } = await walk(express, choice({ identity: identity as never }))
    expect(outcome).toBe('fault')
    expect(receiver.errors[0]).toBeInstanceOf(ServiceAuthError)
    expect(told).toEqual([])
  })

  describe('authorize', () => {
    const refuse: RequestHandler = (_request, response) => void response.sendStatus(403)

    test('runs one after the other, and then the route', async () => {
      const order: number[] = []
      const step = (number: number, act: typeof now) =>
        act((_, next) => [order.push(number), next()])
      const authorize = WAYS.map(([, act], number) => step(number, act))
      expect((await walk(express, choice({ authorize }))).outcome).toBe('passed')
      expect(order).toEqual([0, 1, 2])
    })

    test.each<[string, RequestHandler, Outcome]>([
      ['answers', refuse, 'HTTP/1.1 403 Forbidden'],
      ['fails', now((_, next) => next(failure)), 'fault'],
      [
        'throws',
        now(() => {
          throw failure
        }),
        'fault',
      ],
      ['rejects', () => Promise.reject(failure), 'fault'],
      ['rejects with nothing', () => Promise.reject(), 'fault'],
      ["calls next('route')", now((_, next) => next('route')), 'fault'],
      ["calls next('router')", now((_, next) => next('router')), 'fault'],
      ['calls next() twice', now((_, next) => [next(), next()]), 'fault'],
      [
        'answers and calls next()',
        now((response, next) => [response.end(), next()]),
        'fault, answered',
      ],
    ])('that %s ends the request', async (_what, authorize, expected) => {
      const behind = vi.fn()
      for (const handlers of [authorize, [authorize, behind], [pass, authorize, behind]]) {
        const { outcome, told } = await walk(express, choice({ authorize: handlers }))
        expect(outcome).toBe(expected)
        expect(told).toMatchObject([{ outcome: 'accepted', credential: 'any' }])
      }
      expect(behind).not.toHaveBeenCalled()
    })

    test('has its own errors passed on as they are', async () => {
      for (const authorize of [now((_, next) => next(failure)), () => Promise.reject(failure)]) {
        const { receiver } = await walk(express, choice({ authorize }))
        expect(receiver.errors[0]).toBe(failure)
      }
    })

    test('is that of the credential only', async () => {
      const authorize = vi.fn(pass)
      const other = choice({ name: 'other', presented: () => false, authorize })
      expect((await walk(express, choice(), other)).outcome).toBe('passed')
      expect(authorize).not.toHaveBeenCalled()
    })
  })

  describe('behind it', () => {
    const bearerOfService = () => `Bearer ${issuer.token()}`
    const gateFor = (...choices: [Choice, ...Choice[]]) => acceptOneOf(choices)
    const service = () => ({ name: 'service', ...serviceCredential(authFor(issuer.policy())) })
    const noToken = (request: Request) => request.headers.authorization === undefined

    test('requirePermissions works for a service, and is a fault for everybody else', async () => {
      const gate = gateFor(service(), choice({ presented: noToken }))
      const receiver = await startReceiver({
        express,
        mount: (app) => app.use(gate, requirePermissions('orders:read')),
      })
      expect(await receiver.rawWith(bearerOfService())).toContain(' 200 OK')
      const without = issuer.token({ permissions: [] })
      expect(await receiver.rawWith(`Bearer ${without}`)).toContain(' 403 ')
      expect(receiver.errors).toEqual([])
      expect(await receiver.raw()).toContain(` ${FAULT_STATUS} `)
      expect(receiver.errors).toMatchObject([{ code: 'wrong_wiring' }])
      expect(receiver.handled).toBe(1)
    })

    test('tells of a service who it is, and of others what they are called', async () => {
      const told: DecisionEvent[] = []
      const gate = acceptOneOf([service(), choice({ presented: noToken })], {
        onDecision: (event) => told.push(event),
      })
      const mark: RequestHandler = (request, _response, next) => {
        Object.assign(request, { id: 'r-1' })
        next()
      }
      const receiver = await startReceiver({ express, mount: (app) => app.use(mark, gate) })
      await receiver.rawWith(bearerOfService())
      await receiver.raw()
      await receiver.rawWith('Bearer garbage')
      const accepted = { outcome: 'accepted', by: 'acceptOneOf', requestId: 'r-1' }
      expect(told).toEqual([
        { ...accepted, credential: 'service', caller: 'billing', keyId: issuer.kid },
        { ...accepted, credential: 'any' },
      ])
      expect(told.every(Object.isFrozen)).toBe(true)
    })

    test('a service has its key reserved in authorize, and a check after the key is a fault', async () => {
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

    test('serviceOf and credentialOf agree on a service', async () => {
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
      expect(await receiver.rawWith(bearerOfService())).toContain(
        '{"name":"service","isSame":true}',
      )
    })

    test('req.credential shows the same, and gives nobody any right', async () => {
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

    test('each of several has a verdict of its own', async () => {
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
            for (const standIn of [
              Object.create(request),
              new Proxy(request, {}),
              { ...request },
            ]) {
              expect(() => one.credentialOf(standIn)).toThrow(ServiceAuthError)
            }
            response.json([
              one.credentialOf(request),
              two.credentialOf(request),
              request.credential,
            ])
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

    test('an error handler that goes on finds nothing accepted', async () => {
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
            app.use(gate)
            app.use((_error: unknown, _request: Request, _response: Response, next: NextFunction) =>
              next(),
            )
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

    test('another acceptOneOf may be the verifier', async () => {
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
})

describe('acceptOneOf', () => {
  const { name: _name, ...nameless } = choice()
  const { presented: _presented, ...unpresented } = choice()
  const { verify: _verify, ...unverified } = choice()
  const { identity: _identity, ...unknown } = choice()
  test.each<[string, unknown, RegExp]>([
    ['no list', choice(), /choices: must be a list/],
    ['nothing', undefined, /choices: must be a list/],
    ['no choice', [], /choices: must not be empty/],
    ['a hole', Array(1), /choices\[0\]/],
    ['no object', ['session'], /choices\[0\]: the options must be an object/],
    ['two of one name', [choice(), choice()], /two of the name any/],
    ['no name', [nameless], /choices\[0\]: name must be a non-empty string/],
    ['an empty name', [choice({ name: '' })], /name must be a non-empty string/],
    ['a name that is no text', [choice({ name: 7 as never })], /name must be a non-empty string/],
    [
      'no presented',
      [choice({ name: 'a' }), unpresented],
      /choices\[1\]: presented must be a function/,
    ],
    ['no verifier', [unverified], /verify must be a handler/],
    [
      'a verifier of errors',
      [choice({ verify: ((_a: 1, _b: 2, _c: 3, _d: 4) => {}) as never })],
      /verify must be a handler/,
    ],
    ['no identity', [unknown], /identity must be a function/],
    ['no authorize that can run', [choice({ authorize: {} as never })], /authorize/],
    ['a list in authorize', [choice({ authorize: [[pass]] as never })], /authorize/],
    ['an unknown member', [{ ...choice(), authorise: pass }], /authorise is not an option/],
  ])('takes %s for a mistake', (_what, choices, message) => {
    const make = () => acceptOneOf(choices as never)
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })

  test.each<[unknown, RegExp]>([
    [{ onDecision: 'log' }, /onDecision must be a function/],
    [{ log: true }, /log is not an option/],
    [7, /must be an object/],
  ])('takes the options %j for a mistake', (options, message) => {
    const make = () => acceptOneOf([choice()], options as never)
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })

  test('is not changed by what becomes of its choices, and takes objects of a class', async () => {
    class Mine implements Choice {
      readonly name = 'mine'
      readonly #whose = 'mine'
      readonly verify = pass
      presented() {
        return this.#whose === 'mine'
      }
      identity() {
        return this.#whose
      }
    }
    const mine = new Mine()
    const choices: [Choice, ...Choice[]] = [mine]
    const gate = acceptOneOf(choices)
    choices.push(choice())
    Object.assign(mine, { name: 'changed', verify: undefined })
    const [{ express }] = EXPRESS_MAJORS as [(typeof EXPRESS_MAJORS)[0]]
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(gate),
      handler: (request, response) => void response.json(gate.credentialOf(request)),
    })
    expect(await receiver.raw()).toContain('{"name":"mine","identity":"mine"}')
  })
})
