import type { RequestHandler } from 'express'
import { describe, expect, it, vi } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import {
  choice,
  failure,
  now,
  type Outcome,
  pass,
  WAYS,
  walk,
  watchRejections,
} from './walk-gate.js'

watchRejections()

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
