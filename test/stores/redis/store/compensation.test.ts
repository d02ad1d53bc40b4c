import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type {
  ReservationRequest,
  Run,
} from '../../../../src/idempotency/leased/idempotency-store.js'
import type { Store } from '../../../../src/stores/memory-store.js'
import { createCompensation } from '../../../../src/stores/redis/store/compensation.js'
import { until } from '../../../support/until.js'
import { answers, begin, openStore, ownRedis, proxyOf, requestFor, retryOf } from '../kit.js'

afterEach(() => {
  vi.useRealTimers()
})

describe('createCompensation', () => {
  const open = (undo: () => Promise<unknown>) => {
    const { add, close } = createCompensation(undo)
    onTestFinished(close)
    return add
  }

  it('undoes four times, last when the work can no longer arrive', async () => {
    vi.useFakeTimers()
    const startedAt = performance.now()
    const begunAt: number[] = []
    open(async () => {
      begunAt.push(performance.now() - startedAt)
    })('work', 1600)
    expect(begunAt).toEqual([0])
    await vi.advanceTimersByTimeAsync(600_000)
    expect(begunAt).toEqual([0, 101, 401, 1601])
  })

  it.each([
    ['fails until it answers', async (count: number) => count <= 4 && Promise.reject(new Error())],
    ['is slow', () => new Promise((resolve) => setTimeout(resolve, 900))],
  ])('ends with an undo that begins after that time, where the store %s', async (_, answer) => {
    vi.useFakeTimers()
    const startedAt = performance.now()
    const begunAt: number[] = []
    open(() => answer(begunAt.push(performance.now() - startedAt)))('work', 1000)
    await vi.advanceTimersByTimeAsync(600_000)
    expect(begunAt.at(-1)).toBeGreaterThanOrEqual(1000)
    expect(begunAt.length).toBeLessThanOrEqual(8)
  })

  it('forgets everything when it is closed, and takes nothing after', async () => {
    vi.useFakeTimers()
    const undo = vi.fn(() => Promise.reject(new Error('down')))
    const compensation = createCompensation(undo)
    compensation.add('work', 0)
    await vi.advanceTimersByTimeAsync(0)
    compensation.close()
    compensation.add('more', 0)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(undo).toHaveBeenCalledTimes(1)
  })
})

/** A store behind a proxy and one without, both connected, and a request for them. */
async function behindProxy(leaseMs: number) {
  const redis = await ownRedis()
  const proxy = await proxyOf(redis)
  const { store } = openStore(proxy, { timeoutMs: 5000 })
  const { store: other } = openStore(redis, { timeoutMs: 5000 })
  await store.consume(randomUUID(), 1000)
  await other.consume(randomUUID(), 1000)
  return { redis, proxy, store, other, request: requestFor({ leaseMs }) }
}

const untilTakenAfter = (run: Run, store: Store): Promise<void> =>
  until('the first attempt has the key', async () => {
    const view = await store.inspect(run.recordId)
    return view !== undefined && view.fence > run.fence
  })

const untilFree = (request: ReservationRequest, store: Store): Promise<void> =>
  until('a retry runs the handler', async () => {
    const { outcome } = await store.reserve(retryOf(request))
    return outcome === 'reserved'
  })

describe('a reservation that arrives late', () => {
  it.each([1000, 30_000])('is taken back with a lease of %i ms', async (leaseMs) => {
    const redis = await ownRedis()
    const { store } = openStore(redis)
    await until('it has connected', () => answers(store))
    redis.pause()
    const requests = Array.from({ length: 50 }, () => requestFor({ leaseMs }))
    const asked = await Promise.allSettled(requests.map((request) => store.reserve(request)))
    expect(asked.every(({ status }) => status === 'rejected')).toBe(true)
    redis.resume()
    const resumedAt = performance.now()
    for (const request of requests) {
      await until('a retry runs the handler', async () => {
        const retry = retryOf(request)
        return store.reserve(retry).then(
          ({ outcome }) => outcome === 'reserved',
          () => false,
        )
      })
    }
    expect(performance.now() - resumedAt).toBeLessThan(Math.max(leaseMs, 2000))
  })

  it('is turned away when it comes after it was taken back, and nothing stays', async () => {
    const redis = await ownRedis()
    const proxy = await proxyOf(redis)
    const { store } = openStore(proxy)
    const request = requestFor({ leaseMs: 4000 })
    await store.reserve(requestFor({ leaseMs: 1, retentionMs: 1 }))
    // It has left the store, and hangs on a wire that the store gives up meanwhile.
    proxy.hold()
    await expect(store.reserve(request)).rejects.toThrow('Redis')
    await until('another connection is tried', async () => proxy.opened > 1)
    proxy.release()
    await until('it was taken back', async () => {
      const { outcome } = await store.reserve(retryOf(request, { leaseMs: 1, retentionMs: 1 }))
      return outcome === 'reserved'
    })
    await until('nothing is left', async () => (await redis.command('DBSIZE')) === '0')
  })

  it('is taken back when its second attempt was refused, and the key is free again', async () => {
    const { proxy, store, other, request } = await behindProxy(5000)
    const run = await begin(other, retryOf(request))
    proxy.hold()
    const reserving = store.reserve(request)
    await sleep(20)
    await proxy.strand()
    expect(await reserving).toMatchObject({ outcome: 'running' })
    await other.settle(run, { type: 'released' })
    proxy.release()
    await untilTakenAfter(run, other)
    const takenAt = performance.now()
    await untilFree(request, other)
    expect(performance.now() - takenAt).toBeLessThan(2000)
  })

  it('does not keep the key when its run and another have released it before', async () => {
    const { proxy, store, other, request } = await behindProxy(5000)
    proxy.hold()
    const reserving = begin(store, request)
    await sleep(20)
    await proxy.strand()
    await store.settle(await reserving, { type: 'released' })
    const run = await begin(other, retryOf(request))
    await other.settle(run, { type: 'released' })
    proxy.release()
    await untilTakenAfter(run, other)
    await untilFree(request, other)
  })

  it('is taken back when its second attempt got an error', async () => {
    const { redis, proxy, store, other, request } = await behindProxy(5000)
    proxy.hold()
    const reserving = store.reserve(request)
    await sleep(20)
    await redis.command('CONFIG', 'SET', 'maxmemory', '1')
    await proxy.strand()
    await expect(reserving).rejects.toThrow('OOM')
    await redis.command('CONFIG', 'SET', 'maxmemory', '0')
    proxy.release()
    await untilFree(request, other)
  })

  it('leaves a run alone that its second attempt has begun', async () => {
    const { proxy, store, request } = await behindProxy(500)
    proxy.hold()
    const reserving = begin(store, request)
    await sleep(20)
    await proxy.strand()
    const run = await reserving
    proxy.release()
    // Longer than its first attempt may be late.
    for (let renewals = 0; renewals < 10; renewals++) {
      await sleep(100)
      expect(await store.renew(run)).toBe(true)
    }
    expect(await store.settle(run, { type: 'not_stored' })).toBe(true)
  })
})
