import type { RequestHandler } from 'express'
import { acceptOneOf, ServiceAuthError } from 'express-service-auth'
import { describe, expect, it, vi } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { startReceiver } from '../../support/receiver/receiver.js'
import {
  choice,
  failure,
  inPromise,
  now,
  type Outcome,
  WAYS,
  walk,
  watchRejections,
} from './walk-gate.js'

watchRejections()

describe.each(EXPRESS_MAJORS)('acceptOneOf, on $major', ({ express }) => {
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
