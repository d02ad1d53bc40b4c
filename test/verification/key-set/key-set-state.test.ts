import { describe, expect, it } from 'vitest'
import type { VerificationKey } from '../../../src/verification/key-set/key-set.js'
import * as states from '../../../src/verification/key-set/key-set-state.js'

const key = (kid: string): VerificationKey => ({ kid, jwk: { kty: 'RSA', n: kid, e: 'AQAB' } })
const keysOf = (...kids: string[]): ReadonlyMap<string, VerificationKey> =>
  new Map(kids.map((kid) => [kid, key(kid)]))

const T0 = 1_800_000_000_000
const DEFAULTS = { staleIfErrorSeconds: 0, timeoutMs: 3000 }
const span = states.lifespanOf({ ...DEFAULTS, refreshSeconds: 300, maxStaleSeconds: 3600 })

/** A life to which things happen, seconds after its start. */
function stateMachine(start: states.KeySetState = states.COLD, lifespan: states.Lifespan = span) {
  let state = start
  const at = (seconds: number): number => T0 + seconds * 1000
  const dispatch = (event: states.KeySetStateEvent): void => {
    state = states.advance(state, event, lifespan)
  }
  return {
    get: () => state,
    fetched(seconds: number, kids: string[], leftSeconds?: number) {
      const freshness = { leftSeconds, maxAgeSeconds: leftSeconds }
      const validators = { etag: '"1"' }
      dispatch({
        type: 'fetched',
        at: at(seconds),
        keys: keysOf(...kids),
        ...freshness,
        validators,
      })
    },
    notModified(seconds: number, leftSeconds?: number) {
      const freshness = { leftSeconds, maxAgeSeconds: leftSeconds }
      dispatch({ type: 'not_modified', at: at(seconds), ...freshness })
    },
    failed(seconds: number, jitter = 0) {
      dispatch({ type: 'failed', at: at(seconds), code: 'network', jitter })
    },
    health(seconds: number) {
      dispatch({ type: 'time_passed', at: at(seconds) })
      return states.keySetHealth(state, at(seconds))
    },
    isRefreshDue: (seconds: number) => states.isRefreshDue(state, at(seconds)),
    isBackingOff: (seconds: number) => states.isBackingOff(state, at(seconds)),
    nextFetchAfterSeconds: () => ((states.nextFetchAt(state) ?? Number.NaN) - T0) / 1000,
  }
}

describe('a set without max-age', () => {
  it('is cold, fresh, stale and expired in turn', () => {
    const state = stateMachine()
    expect(state.health(0)).toEqual({ state: 'cold', keys: [] })
    state.fetched(0, ['a'])
    const expiresAt = T0 / 1000 + 3600
    expect(state.health(0)).toEqual({ state: 'fresh', ageSeconds: 0, keys: ['a'], expiresAt })
    expect(state.health(299.999).state).toBe('fresh')
    expect(state.health(300).state).toBe('stale')
    expect(state.health(3599.999)).toMatchObject({ state: 'stale', keys: ['a'] })
    const expired = { state: 'expired', ageSeconds: 3600, keys: [], expiresAt }
    expect(state.health(3600)).toEqual(expired)
  })

  it('is due for a refresh after refreshSeconds, and stays due after it has expired', () => {
    const state = stateMachine()
    expect(state.isRefreshDue(0)).toBe(false)
    expect(state.nextFetchAfterSeconds()).toBeNaN()
    state.fetched(0, ['a'])
    expect(state.isRefreshDue(299.999)).toBe(false)
    expect(state.isRefreshDue(300)).toBe(true)
    expect(state.nextFetchAfterSeconds()).toBe(300)
    state.health(4000)
    expect(state.isRefreshDue(4000)).toBe(true)
    expect(state.nextFetchAfterSeconds()).toBeLessThanOrEqual(4000)
  })
})

describe('max-age', () => {
  it.each([
    [60, 30, 60],
    [10, 5, 10],
    [600, 300, 600],
    [601, 300, 601],
    [604_800, 300, 3600],
  ])('of %d s: refreshed after %d s, expired after %d s', (maxAge, refresh, expiry) => {
    const state = stateMachine()
    state.fetched(0, ['a'], maxAge)
    expect(state.health(refresh - 0.001).state).toBe('fresh')
    expect(state.health(refresh).state).toBe('stale')
    expect(state.health(expiry - 0.001).state).toBe('stale')
    expect(state.health(expiry).state).toBe('expired')
  })
})

it('applies the floors of refreshSeconds and maxStaleSeconds', () => {
  const floors = { refreshSeconds: 5, maxStaleSeconds: 10 }
  const applied = (seconds: typeof floors) => states.lifespanOf({ ...DEFAULTS, ...seconds })
  expect(applied({ refreshSeconds: 1, maxStaleSeconds: 1 })).toMatchObject(floors)
  expect(applied(floors)).toMatchObject(floors)
  const longer = { refreshSeconds: 6, maxStaleSeconds: 11 }
  expect(applied(longer)).toMatchObject(longer)
})

describe('a 304', () => {
  it('renews the set as it is', () => {
    const state = stateMachine()
    state.fetched(0, ['a'], 60)
    state.notModified(50, 60)
    expect(state.health(109)).toMatchObject({ state: 'stale', keys: ['a'] })
    expect(state.get().current?.validators).toEqual({ etag: '"1"' })
  })

  it('renews nothing that has expired, or never was', () => {
    const state = stateMachine()
    state.notModified(0, 60)
    expect(state.health(0).state).toBe('cold')
    state.fetched(0, ['a'], 60)
    state.notModified(60, 60)
    expect(state.health(60)).toMatchObject({ state: 'expired', keys: [] })
  })
})

describe('a failure', () => {
  it('takes nothing away, and says why until a fetch succeeds', () => {
    const state = stateMachine()
    state.fetched(0, ['a'])
    state.failed(10)
    expect(state.health(10)).toMatchObject({ state: 'fresh', keys: ['a'], lastError: 'network' })
    expect(state.get().lastFailure?.isNotFound).toBe(false)
    state.fetched(20, ['a'])
    expect(state.health(20)).not.toHaveProperty('lastError')
  })

  it('backs off from half a second to half a minute, doubling, with jitter', () => {
    for (const [jitter, backOffs] of [
      [0, [0.5, 1, 2, 4, 8, 15, 15, 15]],
      [1, [1, 2, 4, 8, 16, 30, 30, 30]],
    ] as const) {
      const state = stateMachine()
      for (const seconds of backOffs) {
        state.failed(0, jitter)
        expect(state.nextFetchAfterSeconds()).toBe(seconds)
        expect(state.isBackingOff(seconds - 0.001)).toBe(true)
        expect(state.isRefreshDue(seconds - 0.001)).toBe(false)
        expect(state.isBackingOff(seconds)).toBe(false)
        expect(state.isRefreshDue(seconds)).toBe(true)
      }
    }
  })
})

describe('a supplied set', () => {
  it('is stale from the start and states for maxStaleSeconds', () => {
    const state = stateMachine(states.initialState(keysOf('a'), T0, span))
    expect(state.health(0)).toMatchObject({ state: 'stale', keys: ['a'] })
    expect(state.isRefreshDue(0)).toBe(true)
    state.failed(1)
    expect(state.health(3599.999)).toMatchObject({ state: 'stale', keys: ['a'] })
    expect(state.health(3600)).toMatchObject({ state: 'expired', keys: [] })
  })

  it('gives way to the first set that is fetched, and is never confirmed by a 304', () => {
    const state = stateMachine(states.initialState(keysOf('a'), T0, span))
    expect(state.get().current?.validators).toBeUndefined()
    state.fetched(1, ['b'])
    expect(state.health(1)).toMatchObject({ state: 'fresh', keys: ['b'] })
  })
})

describe('a set past its max-age', () => {
  const forgiving = { ...span, staleIfErrorSeconds: 600 }
  const at = (seconds: number): number => T0 + seconds * 1000
  const life = () => {
    const state = stateMachine(states.COLD, forgiving)
    state.fetched(0, ['a'], 60)
    return state
  }
  const expiresAt = (seconds: number): number => T0 / 1000 + seconds
  const usable = (state: states.KeySetState, seconds: number): states.KeySetState =>
    states.usableState(state, at(seconds), forgiving)

  it('has expired, unless fetching fails at the moment', () => {
    const state = life().get()
    expect(usable(state, 59.999)).toBe(state)
    expect(usable(state, 60)).toEqual({
      ...state,
      current: undefined,
      expired: { fetchedAt: T0, expiresAt: at(60) },
    })
  })

  it.each([
    // The retry begins after half a second, and takes at most two attempts of 3 s and the second between them.
    ['network', 67.499, true],
    ['network', 67.5, false],
    ['closed', 60, false],
  ] as const)('after the failure %s stays for %d s: %s', (code, seconds, isUsable) => {
    const failure = { type: 'failed', at: at(60), code, jitter: 0 } as const
    const state = states.advance(life().get(), failure, forgiving)
    expect(usable(state, seconds).current).toBe(isUsable ? state.current : undefined)
  })

  it('ends when staleIfErrorSeconds are over, whatever fails', () => {
    const state = life()
    state.failed(659)
    expect(state.health(659.999).state).toBe('stale')
    expect(state.health(660).state).toBe('expired')
  })

  it('is said to expire at its max-age, or, while fetching fails, at its end', () => {
    const state = life()
    expect(state.health(30).expiresAt).toBe(expiresAt(60))
    state.failed(30)
    expect(state.health(30).expiresAt).toBe(expiresAt(660))
  })
})

describe('a clock that was set back', () => {
  it('makes a refresh due at once', () => {
    const state = stateMachine()
    state.fetched(1000, ['a'])
    expect(state.isRefreshDue(999)).toBe(true)
    expect(state.health(999)).toMatchObject({ state: 'stale', ageSeconds: 0, keys: ['a'] })
  })
})
