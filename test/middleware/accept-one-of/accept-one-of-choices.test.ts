import type { RequestHandler } from 'express'
import { acceptOneOf, type Choice, ServiceAuthError } from 'express-service-auth'
import { describe, expect, it, vi } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { startReceiver } from '../../support/receiver/receiver.js'
import { throwing } from '../../support/throwing.js'
import {
  choice,
  failure,
  inPromise,
  now,
  type Outcome,
  pass,
  WAYS,
  walk,
  watchRejections,
} from './walk-gate.js'

watchRejections()

describe.each(EXPRESS_MAJORS)('acceptOneOf, on $major', ({ express }) => {
  it('decides which credential is presented before any verifier runs', async () => {
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

  it('refuses none and more than one, and asks nobody', async () => {
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

  it.each<[string, Partial<Choice>, unknown]>([
    [
      'throws',
      {
        presented: throwing(failure),
      },
      failure,
    ],
    ['gives a text', { presented: (() => 'yes') as never }, undefined],
    ['rejects', { presented: (() => Promise.reject(failure)) as never }, undefined],
  ])('a presented that %s is a fault', async (_what, change, cause) => {
    const verify = vi.fn()
    const { outcome, receiver } = await walk(express, choice({ ...change, verify }))
    expect(outcome).toBe('fault')
    expect(receiver.errors[0]).toBeInstanceOf(ServiceAuthError)
    expect((receiver.errors[0] as Error).cause).toBe(cause)
    expect(verify).not.toHaveBeenCalled()
  })

  it.each([undefined, null])('an identity that is %s is the 401', async (nobody) => {
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

  it.each([0, '', false, Number.NaN])('an identity that is %j is one', async (identity) => {
    expect((await walk(express, choice({ identity: () => identity }))).outcome).toBe('passed')
  })

  it.each<[string, () => unknown]>([
    ['throws', throwing(failure)],
    ['gives a promise', async () => 'somebody'],
    ['rejects', () => Promise.reject(failure)],
    // biome-ignore lint/suspicious/noThenProperty: what is tested
    ['gives something thenable', () => ({ then: () => {} })],
  ])('an identity that %s is a fault', async (_what, identity) => {
    const { outcome, receiver, told } = await walk(express, choice({ identity: identity as never }))
    expect(outcome).toBe('fault')
    expect(receiver.errors[0]).toBeInstanceOf(ServiceAuthError)
    expect(told).toEqual([])
  })
})

describe.each(EXPRESS_MAJORS)('a verifier of acceptOneOf, on $major', ({ express }) => {
  describe.each(WAYS)('a verifier that %s', (_way, act) => {
    it.each<[string, Parameters<typeof now>[0], Outcome]>([
      ['calls next()', (_, next) => next(), 'passed'],
      ['calls next() and next(error)', (_, next) => [next(), next(failure)], 'passed'],
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
        // What a verifier gives to `next` is passed on as it is.
        if (error !== failure) expect(error).toBeInstanceOf(ServiceAuthError)
      }
    })
  })

  it.each<[string, RequestHandler]>([
    ['throws', now(throwing(failure))],
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

  it.each(['route', 'router', undefined, null, 0, ''])(
    'a verifier that rejects with %j is a fault',
    async (reason) => {
      const { outcome } = await walk(express, choice({ verify: () => Promise.reject(reason) }))
      expect(outcome).toBe('fault')
    },
  )

  it('judges outside of the verifier, whose try sees nothing of what follows', async () => {
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
})

describe.each(EXPRESS_MAJORS)('authorize of acceptOneOf, on $major', ({ express }) => {
  const refuse: RequestHandler = (_request, response) => void response.sendStatus(403)

  it('runs one after the other, and then the route', async () => {
    const order: number[] = []
    const step = (number: number, act: typeof now) => act((_, next) => [order.push(number), next()])
    const authorize = WAYS.map(([, act], number) => step(number, act))
    expect((await walk(express, choice({ authorize }))).outcome).toBe('passed')
    expect(order).toEqual([0, 1, 2])
  })

  it.each<[string, RequestHandler, Outcome]>([
    ['answers', refuse, 'HTTP/1.1 403 Forbidden'],
    ['fails', now((_, next) => next(failure)), 'fault'],
    ['rejects', () => Promise.reject(failure), 'fault'],
    ["calls next('route')", now((_, next) => next('route')), 'fault'],
  ])('that %s ends the request, and its own errors are passed on', async (_what, act, expected) => {
    const behind = vi.fn()
    const { outcome, told, receiver } = await walk(
      express,
      choice({ authorize: [pass, act, behind] }),
    )
    expect(outcome).toBe(expected)
    expect(told).toMatchObject([{ outcome: 'accepted', credential: 'any' }])
    for (const error of receiver.errors) {
      if (error !== failure) expect(error).toMatchObject({ code: 'wrong_wiring' })
    }
    expect(behind).not.toHaveBeenCalled()
  })

  it('is that of the credential only', async () => {
    const authorize = vi.fn(pass)
    const other = choice({ name: 'other', presented: () => false, authorize })
    expect((await walk(express, choice(), other)).outcome).toBe('passed')
    expect(authorize).not.toHaveBeenCalled()
  })
})
