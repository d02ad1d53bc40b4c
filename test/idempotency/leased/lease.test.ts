import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { startLease } from '../../../src/idempotency/leased/lease.js'

const LEASE_MS = 3000

describe('A lease', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())
  const keep = (renew: () => Promise<boolean>, maxRunMs = 60_000) =>
    startLease({ leaseMs: LEASE_MS, maxRunMs }, performance.now(), renew)

  it('is renewed three times in its length, for as long as it is not stopped', async () => {
    const renew = vi.fn(async () => true)
    const lease = keep(renew)
    await vi.advanceTimersByTimeAsync(10 * LEASE_MS)
    expect(renew).toHaveBeenCalledTimes(30)
    expect(lease.signal.aborted).toBe(false)
    lease.stopRenewing()
    await vi.advanceTimersByTimeAsync(10 * LEASE_MS)
    expect(renew).toHaveBeenCalledTimes(30)
    expect(lease.signal.aborted).toBe(false)
  })

  it('needs no timer once it has run out for good', async () => {
    const renew = vi.fn(async () => true)
    const lease = keep(renew, LEASE_MS)
    await vi.advanceTimersByTimeAsync(4 * LEASE_MS)
    expect(lease.signal.aborted).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is lost at once when the store says so, and asked for no more', async () => {
    const renew = vi.fn(async () => false)
    const { signal } = keep(renew)
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3)
    expect(signal.aborted).toBe(true)
    await vi.advanceTimersByTimeAsync(LEASE_MS)
    expect(renew).toHaveBeenCalledTimes(1)
  })

  it('is lost when it has run out, and not before, while the store is unreachable', async () => {
    const renew = vi.fn(async (): Promise<boolean> => {
      throw new Error('unreachable')
    })
    const { signal } = keep(renew)
    await vi.advanceTimersByTimeAsync(LEASE_MS - 1)
    expect(signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(signal.aborted).toBe(true)
    expect(renew.mock.calls.length).toBeGreaterThan(1)
  })

  it('outlives a renewal that fails', async () => {
    let isDown = true
    const { signal } = keep(async () => {
      if (isDown) throw new Error('unreachable')
      return true
    })
    await vi.advanceTimersByTimeAsync(LEASE_MS / 2)
    isDown = false
    await vi.advanceTimersByTimeAsync(5 * LEASE_MS)
    expect(signal.aborted).toBe(false)
  })

  it('is lost, too, when the store never answers, which is asked once at a time', async () => {
    const renew = vi.fn(() => new Promise<boolean>(() => {}))
    const { signal } = keep(renew)
    await vi.advanceTimersByTimeAsync(LEASE_MS)
    expect(signal.aborted).toBe(true)
    expect(renew).toHaveBeenCalledTimes(1)
  })

  it('tells whatever is still at work when the run is abandoned', async () => {
    const renew = vi.fn(async () => true)
    const lease = keep(renew)
    await lease.abandon()
    expect(lease.signal.aborted).toBe(true)
    await vi.advanceTimersByTimeAsync(LEASE_MS)
    expect(renew).not.toHaveBeenCalled()
  })
  it('is renewed again after a renewal that throws', async () => {
    const renew = vi.fn((): Promise<boolean> => {
      throw new Error('at once')
    })
    keep(renew)
    await vi.advanceTimersByTimeAsync((2 * LEASE_MS) / 3)
    expect(renew).toHaveBeenCalledTimes(2)
  })

  it('is not lost by a renewal that is refused after the run has ended', async () => {
    let confirm = (_isRenewed: boolean): void => {}
    const lease = keep(() => new Promise((resolve) => (confirm = resolve)))
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3)
    lease.stopRenewing()
    confirm(false)
    await vi.advanceTimersByTimeAsync(0)
    expect(lease.signal.aborted).toBe(false)
  })

  it('is abandoned once no renewal is in progress', async () => {
    let confirm = (_isRenewed: boolean): void => {}
    const lease = keep(() => new Promise((resolve) => (confirm = resolve)))
    await vi.advanceTimersByTimeAsync(LEASE_MS / 3)
    let isAbandoned = false
    void lease.abandon().then(() => (isAbandoned = true))
    await vi.advanceTimersByTimeAsync(0)
    expect([lease.signal.aborted, isAbandoned]).toEqual([true, false])
    confirm(true)
    await vi.advanceTimersByTimeAsync(0)
    expect(isAbandoned).toBe(true)
  })
})
