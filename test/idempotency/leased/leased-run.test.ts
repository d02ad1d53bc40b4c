import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { IdempotencyStore } from '../../../src/idempotency/leased/idempotency-store.js'
import { createLeasedRun } from '../../../src/idempotency/leased/leased-run.js'
import type { HandlerEnding, HandlerRun } from '../../../src/idempotency/run.js'

const LEASE_MS = 3000
const REQUEST = {
  recordId: 'record',
  fingerprint: 'same',
  hasKey: true,
  retentionMs: 60_000,
  requester: {},
}

describe('The lease of a run', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  /** Begins a run whose store renews its lease like this. */
  async function begin(renew: IdempotencyStore['renew'], maxRunMs = 60_000) {
    let handlerRun: HandlerRun | undefined
    let end = (_ending: HandlerEnding): void => {}
    const settle = vi.fn(async () => true)
    const store: IdempotencyStore = {
      reserve: async () => ({ outcome: 'reserved', fence: 1 }),
      renew,
      settle,
    }
    const options = { leaseMs: LEASE_MS, maxRunMs, rerunAbandoned: false }
    const outcome = createLeasedRun(store, options, () => {})(REQUEST, (run) => {
      handlerRun = run
      return new Promise((resolve) => (end = resolve))
    })
    await vi.advanceTimersByTimeAsync(0)
    const { signal, answered } = handlerRun as HandlerRun
    return { signal, answered, end, outcome, settle }
  }

  it('is renewed three times in its length, until the answer is complete', async () => {
    const renew = vi.fn(async () => true)
    const { signal, answered } = await begin(renew)
    await vi.advanceTimersByTimeAsync(10 * LEASE_MS)
    answered()
    await vi.advanceTimersByTimeAsync(10 * LEASE_MS)
    expect(renew).toHaveBeenCalledTimes(30)
    expect(signal.aborted).toBe(false)
  })

  it('needs no timer once it has run out for good', async () => {
    const { signal } = await begin(async () => true, LEASE_MS)
    await vi.advanceTimersByTimeAsync(4 * LEASE_MS)
    expect(signal.aborted).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is lost at once when the store says so, and asked for no more', async () => {
    const renew = vi.fn(async () => false)
    const { signal } = await begin(renew)
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3)
    expect(signal.aborted).toBe(true)
    await vi.advanceTimersByTimeAsync(LEASE_MS)
    expect(renew).toHaveBeenCalledTimes(1)
  })

  it.each<[string, number, () => Promise<boolean>]>([
    ['rejects', 3, () => Promise.reject(new Error('unreachable'))],
    ['never answers', 1, () => new Promise(() => {})],
  ])('is lost when it has run out, and not before, while the store %s', async (_, calls, reply) => {
    const renew = vi.fn(reply)
    const { signal } = await begin(renew)
    await vi.advanceTimersByTimeAsync(LEASE_MS - 1)
    expect(signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(signal.aborted).toBe(true)
    expect(renew).toHaveBeenCalledTimes(calls)
  })

  it('outlives a renewal that fails', async () => {
    let isDown = true
    const { signal } = await begin(async () => {
      if (isDown) throw new Error('unreachable')
      return true
    })
    await vi.advanceTimersByTimeAsync(LEASE_MS / 2)
    isDown = false
    await vi.advanceTimersByTimeAsync(5 * LEASE_MS)
    expect(signal.aborted).toBe(false)
  })

  it('is not lost by a renewal that is refused after the answer is complete', async () => {
    let confirm = (_isRenewed: boolean): void => {}
    const { signal, answered } = await begin(() => new Promise((resolve) => (confirm = resolve)))
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3)
    answered()
    confirm(false)
    await vi.advanceTimersByTimeAsync(0)
    expect(signal.aborted).toBe(false)
  })

  it('ends with an aborted run, once no renewal is in progress', async () => {
    let confirm = (_isRenewed: boolean): void => {}
    const run = await begin(() => new Promise((resolve) => (confirm = resolve)))
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3)
    run.end({ type: 'aborted' })
    await vi.advanceTimersByTimeAsync(0)
    expect(run.signal.aborted).toBe(true)
    expect(run.settle).not.toHaveBeenCalled()
    confirm(true)
    expect(await run.outcome).toEqual({ outcome: 'answered', end: 'abandoned' })
    expect(run.settle).toHaveBeenCalledTimes(1)
  })
})
