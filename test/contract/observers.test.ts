import type { RequestHandler } from 'express'
import { type DecisionEvent, type DecisionObserver, requirePermissions } from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { collectEvents } from '../support/observe/channel-events.js'
import { collectUnhandledErrors } from '../support/observe/unhandled-errors.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startBehind, startReceiver } from '../support/receiver/receiver.js'
import { throwing } from '../support/throwing.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

const HOSTILE_OBSERVERS: Record<string, DecisionObserver> = {
  throws: throwing(Object.assign(new Error('observer'), { status: 200 })),
  rejects: async () => {
    throw new Error('observer')
  },
  'writes to the event': (event) => {
    Object.assign(event, { outcome: 'accepted', status: 200 })
  },
}

describe.each(EXPRESS_MAJORS)('what operators see, on $major', ({ express }) => {
  it('is every decision on the request, in order, on the channel and in onDecision', async () => {
    const events: DecisionEvent[] = []
    const published = collectEvents('decision')
    const receiver = await startBehind(
      express,
      authFor(issuer.policy({ onDecision: (event) => events.push(event) })),
      requirePermissions('orders:read'),
      requirePermissions('a', 'orders:archive'),
    )
    await receiver.call(issuer.token({ permissions: ['orders:read', 'a'] }))
    await receiver.call()
    await receiver.call(issuer.token({ aud: 'payments' }))
    await receiver.call(issuer.token({ sub: 'stranger' }))
    const known = { caller: 'billing', keyId: issuer.kid }
    const refused = { outcome: 'refused', by: 'serviceAuth' }
    expect(events).toEqual([
      { outcome: 'accepted', confirmation: 'none', by: 'serviceAuth', ...known },
      { outcome: 'accepted', confirmation: 'none', by: 'requirePermissions', ...known },
      {
        outcome: 'refused',
        by: 'requirePermissions',
        reason: 'permission_missing',
        permission: 'orders:archive',
        status: 403,
        ...known,
      },
      { ...refused, reason: 'credentials_missing', status: 401 },
      { ...refused, reason: 'claim_invalid', claim: 'aud', keyId: issuer.kid, status: 401 },
      {
        ...refused,
        reason: 'caller_not_approved',
        claim: 'sub',
        caller: 'stranger',
        keyId: issuer.kid,
        status: 403,
      },
    ])
    expect(published).toEqual(events)
    for (const event of events) expect(Object.isFrozen(event)).toBe(true)
  })

  it.each(Object.entries(HOSTILE_OBSERVERS))(
    'changes nothing where the observer %s',
    async (_name, onDecision) => {
      const unhandled = collectUnhandledErrors()
      const receiver = await startBehind(
        express,
        authFor(issuer.policy({ onDecision })),
        requirePermissions('orders:read'),
      )
      const statuses = [
        (await receiver.call(issuer.token())).status,
        (await receiver.call(issuer.token({ permissions: [] }))).status,
        (await receiver.call('x')).status,
        (await receiver.call()).status,
      ]
      expect(statuses).toEqual([200, 403, 401, 401])
      expect(receiver.errors).toEqual([])
      expect(unhandled).toEqual([])
    },
  )

  it.each<[string, unknown, boolean]>([
    ['a number', 42, true],
    ['zero', 0, true],
    ['text', 'req-1_!~', true],
    ['text of 128', 'x'.repeat(128), true],
    ['text of 129', 'x'.repeat(129), false],
    ['nothing', undefined, false],
    ['empty', '', false],
    ['a blank', 'a b', false],
    ['beyond ASCII', 'ä', false],
    ['no number', Number.NaN, false],
  ])('carries a req.id that is %s: %s, %s', async (_name, id, carried) => {
    const events = collectEvents('decision')
    const identify: RequestHandler = (request, _response, next) => {
      Object.assign(request, { id })
      next()
    }
    const receiver = await startBehind(express, identify, authFor(issuer.policy()))
    await receiver.call(issuer.token())
    await receiver.call()
    for (const event of events) {
      expect('requestId' in event).toBe(carried)
      if (carried) expect(event.requestId).toBe(id)
    }
    expect(events).toHaveLength(2)
  })

  it('never takes the id from a header', async () => {
    const events = collectEvents('decision')
    const receiver = await startBehind(express, authFor(issuer.policy()))
    await receiver.call(issuer.token(), { headers: { 'x-request-id': 'attacker' } })
    expect(events[0]).not.toHaveProperty('requestId')
  })

  it('reaches the first serviceAuth also where a second one refuses', async () => {
    const first: DecisionEvent[] = []
    const second: DecisionEvent[] = []
    const receiver = await startReceiver({
      express,
      mount(app) {
        app.use(authFor(issuer.policy({ onDecision: (event) => first.push(event) })))
        const stricter = {
          callers: ['reporting'],
          onDecision: (event: DecisionEvent) => second.push(event),
        }
        app.use(authFor(issuer.policy(stricter)))
      },
    })
    expect((await receiver.call(issuer.token())).status).toBe(403)
    expect(first.map(({ outcome }) => outcome)).toEqual(['accepted', 'refused'])
    expect(second.map(({ outcome }) => outcome)).toEqual(['refused'])
  })
})
