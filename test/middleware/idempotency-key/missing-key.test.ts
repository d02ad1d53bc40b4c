import { memoryStore, requirePermissions, type ServiceAuthError } from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import type { OrdersOptions } from '../../support/receiver/order-receiver.js'
import { expectOwnError } from '../../support/receiver/own-error.js'
import { startOrders } from '../../support/receiver/receiver.js'
import { watchedStore } from '../../support/stores/watched-store.js'

const store = memoryStore()
afterAll(() => store.close())

describe.each(EXPRESS_MAJORS)("missingKey: 'run', $major", ({ express: app }) => {
  async function start(more: Partial<OrdersOptions> = {}) {
    const watched = watchedStore(store)
    const contexts: unknown[] = []
    const receiver = await startOrders({
      express: app,
      store: watched,
      options: { missingKey: 'run' },
      handler(request, response) {
        contexts.push('idempotency' in request ? request.idempotency : 'none')
        response.status(201).json({ run: contexts.length })
      },
      ...more,
    })
    return Object.assign(receiver, { store: watched, contexts })
  }

  it('runs the handler on every request without the header, and asks the store nothing', async () => {
    const events = hearIdempotency()
    const receiver = await start()
    receiver.store.fail('reserve')
    for (const run of [1, 2]) {
      const answer = await call(receiver.port, { body: '{"item":1}' })
      expect(answer).toMatchObject({ status: 201, problem: undefined })
      expect(JSON.parse(answer.body.toString())).toEqual({ run })
      expect(answer.headers['idempotent-replayed']).toBeUndefined()
    }
    expect(receiver.contexts).toEqual(['none', 'none'])
    expect(receiver.store.endings).toEqual([])
    const event = {
      outcome: 'accepted',
      reason: 'key_missing',
      by: 'requireIdempotencyKey',
      caller: 'billing',
    }
    expect(events).toEqual([event, event])
  })

  it('still reserves a key, and replays', async () => {
    const receiver = await start()
    const key = newKey()
    const first = await call(receiver.port, { key })
    await call(receiver.port)
    const second = await call(receiver.port, { key })
    expect(second.body).toEqual(first.body)
    expect(second.headers['idempotent-replayed']).toEqual(['true'])
    expect(receiver.contexts).toEqual([expect.objectContaining({ key }), 'none'])
  })

  it('streams what the handler sends, at once and beyond maxResponseBytes', async () => {
    const receiver = await start({
      options: { missingKey: 'run', maxResponseBytes: 0 },
      handler: (_request, response) => {
        response.write('first')
        setTimeout(() => response.end('last'), 50)
      },
    })
    const answer = await call(receiver.port)
    expect(answer.body.toString()).toBe('firstlast')
  })

  it('lets no check come after it: next(error)', async () => {
    const receiver = await start({ inner: [requirePermissions('orders:read')] })
    expect((await call(receiver.port)).status).toBe(500)
    const [error] = receiver.errors as ServiceAuthError[]
    expectOwnError(error, { code: 'wrong_wiring', message: expect.any(String) })
    expect(receiver.handled).toBe(0)
  })
})
