import { setTimeout as delay } from 'node:timers/promises'
import express from 'express'
import { memoryStore, requireSingleUse, type StoreEvent } from 'express-service-auth'
import { describe, expect, it, vi } from 'vitest'
import {
  ServiceAuthError,
  toServiceAuthError,
} from '../../../src/base/decision/service-auth-error.js'
import {
  announceDenylist,
  announcePostgres,
  callStore,
} from '../../../src/base/decision/store-event.js'
import { issuer } from '../../support/issuer/issuer.js'
import { collectEvents } from '../../support/observe/channel-events.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import type { OrdersOptions } from '../../support/receiver/order-receiver.js'
import {
  authFor,
  type Receiver,
  startBehind,
  startOrders,
} from '../../support/receiver/receiver.js'
import { leaveChannels } from '../../support/secret-search/index.js'
import { watchedStore } from '../../support/stores/watched-store.js'
import { until } from '../../support/until.js'

leaveChannels()

const collect = () => collectEvents('store')

const toldOf = (events: readonly StoreEvent[]): string[] =>
  events.map(({ operation, ok }) => `${operation} ${ok ? 'ok' : 'failed'}`)

describe('a call of a store', () => {
  it('is not timed while nobody listens', async () => {
    const now = vi.spyOn(performance, 'now')
    expect(await callStore('consume', async () => true)).toBe(true)
    await expect(callStore('consume', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(now).not.toHaveBeenCalled()
  })

  it('is told with the milliseconds that it took, whatever its answer is', async () => {
    const events = collect()
    expect(await callStore('consume', () => delay(50, false))).toBe(false)
    expect(events).toHaveLength(1)
    expect(Object.keys(events[0] ?? {})).toEqual(['operation', 'ok', 'durationMs'])
    expect(events[0]).toMatchObject({ operation: 'consume', ok: true })
    // A timer may be a millisecond early.
    expect(events[0]?.durationMs).toBeGreaterThan(48)
    expect(events[0]?.durationMs).toBeLessThan(5000)
    expect(Object.isFrozen(events[0])).toBe(true)
  })
})

it('events of a denylist and of Postgres are made only for who listens', () => {
  const make = vi.fn(() => ({ type: 'recovered' }) as const)
  announceDenylist(() => [make()])
  const sweep = vi.fn(() => ({ type: 'swept', deleted: 1, durationMs: 2 }) as const)
  announcePostgres(sweep)
  expect([make, sweep].flatMap(({ mock }) => mock.calls)).toEqual([])
  const heard = { denylist: collectEvents('denylist'), postgres: collectEvents('postgres') }
  announceDenylist(() => [make()])
  announcePostgres(sweep)
  expect(heard).toEqual({ denylist: [make()], postgres: [sweep()] })
  expect(heard.denylist.every(Object.isFrozen)).toBe(true)
})

it('what other code has thrown is an error of this package, whose own stay as they are', () => {
  const own = new ServiceAuthError('wrong_wiring', 'wired')
  expect(toServiceAuthError('a guard', own)).toBe(own)
  const thrown = Object.assign(new Error('theirs'), { status: 401 })
  const error = toServiceAuthError('a guard', thrown)
  expect(error).toMatchObject({ code: 'internal', cause: thrown })
  expect(error).not.toHaveProperty('status')
})

async function open(options: Partial<OrdersOptions>): Promise<Receiver> {
  const handler: OrdersOptions['handler'] = (_req, res) => void res.status(201).json({})
  const receiver = await startOrders({ express, handler, ...options })
  return receiver
}

describe('what operators see of a store of the user', () => {
  it('is each use of a token, also one that the store cannot decide on', async () => {
    const events = collect()
    let isDown = false
    const memory = memoryStore()
    const store = {
      consume: (id: string, ttlMs: number) =>
        isDown ? Promise.reject(new Error('away')) : memory.consume(id, ttlMs),
    }
    const receiver = await startBehind(
      express,
      authFor(issuer.policy()),
      requireSingleUse({ store }),
    )
    const token = issuer.token()
    expect((await receiver.call(token)).status).toBe(200)
    expect((await receiver.call(token)).status).toBe(401)
    isDown = true
    expect((await receiver.call(issuer.token())).status).toBe(503)
    expect(toldOf(events)).toEqual(['consume ok', 'consume ok', 'consume failed'])
  })

  it('is each reservation and each ending, also those that fail', async () => {
    const events = collect()
    const store = watchedStore(memoryStore())
    const receiver = await open({ store })
    const key = newKey()
    await call(receiver.port, { key })
    await call(receiver.port, { key })
    store.fail('settle')
    await call(receiver.port, { key: newKey() })
    store.fail('reserve')
    expect((await call(receiver.port, { key: newKey() })).status).toBe(503)
    const told = ['reserve ok', 'settle ok', 'reserve ok', 'reserve ok', 'settle failed']
    expect(toldOf(events)).toEqual([...told, 'reserve failed'])
  })

  it('is each renewal of a lease, with its duration, also one that fails', async () => {
    const events = collect()
    const store = watchedStore(memoryStore())
    let answer = (): void => {}
    const receiver = await open({
      store,
      options: { leaseSeconds: 1 },
      handler(_req, res) {
        answer = () => void res.status(201).json({})
      },
    })
    const answered = call(receiver.port, { key: newKey() })
    const renewals = (): string[] => toldOf(events).filter((told) => told.startsWith('renew'))
    await until('a renewal has been told', async () => renewals().includes('renew ok'))
    store.fail('renew')
    await until('a failed one too', async () => renewals().includes('renew failed'))
    answer()
    expect((await answered).status).toBe(201)
    expect(toldOf(events).at(-1)).toBe('settle ok')
  })
})
