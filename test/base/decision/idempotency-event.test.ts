import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import type { RequestHandler } from 'express'
import { memoryStore, type Reservation } from 'express-service-auth'
import { describe, expect, it } from 'vitest'
import { collectEvents, onEvent } from '../../support/observe/channel-events.js'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { openOrders } from '../../support/receiver/order-receiver.js'
import { startOrders } from '../../support/receiver/receiver.js'
import { leaveChannels } from '../../support/secret-search/index.js'
import { until } from '../../support/until.js'

leaveChannels()

const collect = () => collectEvents('idempotency')

describe.each(EXPRESS_MAJORS)('What operators see of keys, $major', ({ express }) => {
  it('tells what became of each request, and never the key', async () => {
    const events = collect()
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

    const records = events.map(({ record }) => record)
    const [first, second] = [records[2], records[6]]
    expect(first).toMatch(/^[\w-]{24}$/)
    expect(second).toMatch(/^[\w-]{24}$/)
    expect(second).not.toBe(first)
    expect(records).toEqual([
      ...[undefined, undefined, first, first, first, first],
      ...[second, second, second, first],
    ])
    const found = events.map((event) => ('found' in event ? event.found : undefined))
    expect(found.filter(Boolean)).toEqual(['abandoned'])
    expect(found[8]).toBe('abandoned')
  })

  it.each<[string, Reservation, string]>([
    ['a run that left no result', { outcome: 'abandoned' }, 'abandoned'],
    ['a record that cannot be read', { outcome: 'unreadable' }, 'unreadable'],
    [
      'a result that cannot be read',
      { outcome: 'finished', result: Buffer.from('x') },
      'unreadable',
    ],
  ])('tells that %s was found', async (_what, reservation, found) => {
    const events = collect()
    const store = { ...memoryStore(), reserve: async () => reservation }
    const receiver = await startOrders({ express, store, handler: (_req, res) => void res.end() })
    expect(await call(receiver.port, { key: newKey() })).toMatchObject({
      status: 409,
      problem: 'outcome-unknown',
      headers: { 'content-type': ['application/problem+json'], 'cache-control': ['no-store'] },
    })
    expect(events).toMatchObject([{ outcome: 'refused', reason: 'outcome_unknown', found }])
  })

  it('tells how a run ended in the context of its request, wherever its handler answers', async () => {
    const storage = new AsyncLocalStorage<string>()
    const contexts: unknown[] = []
    onEvent('idempotency', ({ reason }) => contexts.push([reason, storage.getStore()]))
    const elsewhere = new AsyncResource('elsewhere')
    const receiver = await startOrders({
      express,
      store: memoryStore(),
      outer: [(req, _res, next) => storage.run(`request ${req.path}`, next)],
      handler: (req, res) =>
        elsewhere.runInAsyncScope(() => {
          if (req.query['end']) res.destroy()
          else res.status(201).json({})
        }),
    })
    await call(receiver.port, { key: newKey(), path: '/orders/1' })
    await call(receiver.port, { key: newKey(), path: '/orders/2?end=1' })
    await until('both have ended', async () => contexts.length === 4)
    expect(contexts).toEqual([
      ['reserved', 'request /orders/1'],
      ['result_kept', 'request /orders/1'],
      ['reserved', 'request /orders/2'],
      ['abandoned', 'request /orders/2'],
    ])
  })

  it('makes no event while nobody listens', async () => {
    let asked = 0
    const countReads: RequestHandler = (req, _res, next) => {
      Object.defineProperty(req, 'id', { get: () => (asked += 1) })
      next()
    }
    const handler: RequestHandler = (_req, res) => void res.status(201).json({})
    const store = memoryStore()
    const receiver = await startOrders({ express, store, outer: [countReads], handler })
    const key = newKey()
    await call(receiver.port, { key })
    await call(receiver.port, { key })
    await call(receiver.port)
    await call(receiver.port, { key, claims: { sub: 'stranger' } })
    expect(asked).toBe(0)
    collect()
    await call(receiver.port, { key })
    expect(asked).toBe(1)
  })
})
