import { randomUUID } from 'node:crypto'
import { memoryStore } from 'express-service-auth'
import {
  idempotencyStoreCases,
  recordKeeperCases,
  singleUseStoreCases,
} from 'express-service-auth/testing'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { testCases } from '../support/stores/store-cases.js'

const shared = memoryStore()
afterAll(() => shared.close())

describe('memoryStore, as any store', () => {
  testCases(singleUseStoreCases(() => shared))
  testCases(idempotencyStoreCases(() => shared))
  testCases(recordKeeperCases(() => shared))
})

const request = () => ({
  recordId: randomUUID(),
  owner: randomUUID(),
  fingerprint: 'f',
  leaseMs: 1000,
  retentionMs: 60_000,
  rerunAbandoned: false,
})

describe('memoryStore', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it('is fit for its purpose', async () => {
    await expect(shared.check()).resolves.toEqual([])
  })

  it('rejects everything after it is closed, and may be closed again', async () => {
    const store = memoryStore()
    store.close()
    store.close()
    const run = { ...request(), fence: 1 }
    await expect(store.consume('id', 1000)).rejects.toThrow('closed')
    await expect(store.reserve(request())).rejects.toThrow('closed')
    await expect(store.renew(run)).rejects.toThrow('closed')
    await expect(store.settle(run, { type: 'released' })).rejects.toThrow('closed')
    await expect(store.check()).rejects.toThrow('closed')
    await expect(store.inspect('record')).rejects.toThrow('closed')
    await expect(store.resolve('record', 1, { type: 'freed' })).rejects.toThrow('closed')
  })

  it('knows how it is', async () => {
    const store = memoryStore()
    expect(store.health()).toEqual({ state: 'unused' })
    await store.consume('id', 1000)
    expect(store.health()).toEqual({ state: 'up' })
    store.close()
    expect(store.health()).toMatchObject({ state: 'down', lastError: 'closed' })
    await expect(store.check()).rejects.toThrow('closed')
    expect(store.health()).toMatchObject({ state: 'down', lastError: 'closed' })
  })

  it('lets an id be used again when its time is over', async () => {
    vi.useFakeTimers()
    const store = memoryStore()
    expect(await store.consume('id', 1000)).toBe(true)
    vi.advanceTimersByTime(999)
    expect(await store.consume('id', 1000)).toBe(false)
    vi.advanceTimersByTime(1)
    expect(await store.consume('id', 1000)).toBe(true)
    store.close()
  })

  it('drops what has expired from its memory within a minute, unasked', async () => {
    vi.useFakeTimers()
    const deleted = vi.spyOn(Map.prototype, 'delete')
    const store = memoryStore()
    const reservation = { ...request(), retentionMs: 1000 }
    await store.consume('id', 1000)
    await store.reserve(reservation)
    vi.advanceTimersByTime(60_000)
    const names = deleted.mock.calls.map(([name]) => name)
    expect(names).toContain('id')
    expect(names).toContain(reservation.recordId)
    store.close()
  })

  it('keeps leases and times by a clock that nobody sets', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const store = memoryStore()
    const reservation = request()
    await store.reserve(reservation)
    await store.consume('id', 1000)
    vi.setSystemTime(Date.now() + 86_400_000)
    expect((await store.reserve({ ...reservation, owner: 'b' })).outcome).toBe('running')
    expect(await store.consume('id', 1000)).toBe(false)
    store.close()
  })

  it('gives fences that grow from one process to the next', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const before = memoryStore()
    const first = await before.reserve(request())
    before.close()
    vi.setSystemTime(Date.now() + 1)
    const after = memoryStore()
    const second = await after.reserve(request())
    after.close()
    if (first.outcome !== 'reserved' || second.outcome !== 'reserved') throw new Error('not free')
    expect(second.fence).toBeGreaterThan(first.fence)
  })
})

describe('the options of memoryStore', () => {
  it('are none', () => {
    for (const options of [{ max: 1 }, null]) {
      expect(() => memoryStore(options as never)).toThrow(TypeError)
    }
  })
})
