import { type Choice, ServiceAuthError } from 'express-service-auth'
import { describe, expect, it, vi } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { choice, failure, walk, watchRejections } from './walk-gate.js'

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
        presented: () => {
          throw failure
        },
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
    [
      'throws',
      () => {
        throw failure
      },
    ],
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
