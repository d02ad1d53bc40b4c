import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type IdempotencyEvent, memoryStore } from 'express-service-auth'
import { describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../support/express-majors.js'
import { call, newKey } from '../support/order-calls.js'
import { openOrders } from '../support/order-receiver.js'

describe.each(EXPRESS_MAJORS)('What operators see of keys, $major', ({ express }) => {
  it('tells what became of each request, and never the key', async () => {
    const events: IdempotencyEvent[] = []
    const listen = (event: unknown): void => void events.push(event as IdempotencyEvent)
    subscribe('express-service-auth:idempotency', listen)
    const store = memoryStore()
    const receiver = await openOrders({
      express,
      store,
      outer: [
        (req, _res, next) => {
          Object.assign(req, { id: 'r-1' })
          next()
        },
      ],
      handler: (req, res) => void (req.query['end'] ? res.destroy() : res.status(201).json({})),
    })
    const key = newKey()
    await call(receiver.port)
    await call(receiver.port, { key: '"' })
    await call(receiver.port, { key })
    await call(receiver.port, { key })
    await call(receiver.port, { key, path: '/orders/2' })
    const other = { key: newKey(), path: '/orders/1?end=1' }
    await call(receiver.port, other)
    await call(receiver.port, other)
    store.close()
    await call(receiver.port, { key })
    unsubscribe('express-service-auth:idempotency', listen)
    await receiver.close()

    expect(events.map(({ outcome, reason }) => `${outcome} ${reason}`)).toEqual([
      'refused key_missing',
      'refused key_invalid',
      'accepted reserved',
      'accepted result_kept',
      'accepted replayed',
      'refused key_reused',
      'accepted reserved',
      'accepted abandoned',
      'refused outcome_unknown',
      'undecided store_unavailable',
    ])
    for (const event of events) {
      expect(event).toMatchObject({
        by: 'requireIdempotencyKey',
        caller: 'billing',
        requestId: 'r-1',
      })
      expect(Object.isFrozen(event)).toBe(true)
    }
    expect(JSON.stringify(events)).not.toContain(key)
  })
})
