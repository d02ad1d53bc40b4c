import { afterEach, describe, expect, it, vi } from 'vitest'
import { watchHealth } from '../../src/stores/store-health.js'

describe('the health of a store', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it('is that of the last call, and keeps what failed last', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_700_000_000_999 })
    const health = watchHealth()
    expect(health.read()).toEqual({ state: 'unused' })
    health.up()
    expect(health.read()).toEqual({ state: 'up' })
    health.down('timeout')
    const failed = { lastError: 'timeout', lastErrorAt: 1_700_000_000 }
    expect(health.read()).toEqual({ state: 'down', ...failed })
    health.up()
    expect(health.read()).toEqual({ state: 'up', ...failed })
    vi.setSystemTime(1_700_000_001_000)
    health.down('network')
    expect(health.read()).toEqual({
      state: 'down',
      lastError: 'network',
      lastErrorAt: 1_700_000_001,
    })
    expect(JSON.parse(JSON.stringify(health.read()))).toEqual(health.read())
  })

  it('of one that is closed stays so', () => {
    const health = watchHealth()
    health.down('closed')
    health.up()
    health.down('timeout')
    expect(health.read()).toMatchObject({ state: 'down', lastError: 'closed' })
  })
})
