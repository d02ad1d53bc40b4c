import { createPublicKey } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { VerificationKey } from '../../../src/verification/key-set/key-set.js'
import * as lives from '../../../src/verification/key-set/key-set-state.js'
import { shapeOfKey } from '../../support/signing-keys.js'

const publicKey = createPublicKey({ key: shapeOfKey('any', 2048), format: 'jwk' })
const key = (kid: string): VerificationKey => ({ kid, thumbprint: kid, publicKey })
const keysOf = (...kids: string[]): ReadonlyMap<string, VerificationKey> =>
  new Map(kids.map((kid) => [kid, key(kid)]))

const T0 = 1_800_000_000_000
const DEFAULTS = { staleIfErrorSeconds: 0, timeoutMs: 3000 }
const span = lives.lifespanOf({ ...DEFAULTS, refreshSeconds: 300, maxStaleSeconds: 3600 })

/** A life to which things happen, seconds after its start. */
function lifeOf(start: lives.Life = lives.COLD, lifespan: lives.Lifespan = span) {
  let life = start
  const at = (seconds: number): number => T0 + seconds * 1000
  const happen = (event: lives.LifeEvent): void => {
    life = lives.advance(life, event, lifespan)
  }
  return {
    get: () => life,
    fetched(seconds: number, kids: string[], leftSeconds?: number) {
      const freshness = { leftSeconds, maxAgeSeconds: leftSeconds }
      const validators = { etag: '"1"' }
      happen({ type: 'fetched', at: at(seconds), keys: keysOf(...kids), ...freshness, validators })
    },
    notModified(seconds: number, leftSeconds?: number) {
      const freshness = { leftSeconds, maxAgeSeconds: leftSeconds }
      happen({ type: 'not_modified', at: at(seconds), ...freshness })
    },
    failed(seconds: number, jitter = 0) {
      happen({ type: 'failed', at: at(seconds), code: 'network', jitter })
    },
    health(seconds: number) {
      happen({ type: 'time_passed', at: at(seconds) })
      return lives.healthOf(life, at(seconds))
    },
    isRefreshDue: (seconds: number) => lives.isRefreshDue(life, at(seconds)),
    isBackingOff: (seconds: number) => lives.isBackingOff(life, at(seconds)),
    nextFetchAfterSeconds: () => ((lives.nextFetchAt(life) ?? Number.NaN) - T0) / 1000,
  }
}

describe('a set without max-age', () => {
  it('is cold, fresh, stale and expired in turn', () => {
    const life = lifeOf()
    expect(life.health(0)).toEqual({ state: 'cold', keys: [] })
    life.fetched(0, ['a'])
    const expiresAt = T0 / 1000 + 3600
    expect(life.health(0)).toEqual({ state: 'fresh', ageSeconds: 0, keys: ['a'], expiresAt })
    expect(life.health(299.999).state).toBe('fresh')
    expect(life.health(300).state).toBe('stale')
    expect(life.health(3599.999)).toMatchObject({ state: 'stale', keys: ['a'] })
    const expired = { state: 'expired', ageSeconds: 3600, keys: [], expiresAt }
    expect(life.health(3600)).toEqual(expired)
  })

  it('is due for a refresh after refreshSeconds, and stays due after it has expired', () => {
    const life = lifeOf()
    expect(life.isRefreshDue(0)).toBe(false)
    expect(life.nextFetchAfterSeconds()).toBeNaN()
    life.fetched(0, ['a'])
    expect(life.isRefreshDue(299.999)).toBe(false)
    expect(life.isRefreshDue(300)).toBe(true)
    expect(life.nextFetchAfterSeconds()).toBe(300)
    life.health(4000)
    expect(life.isRefreshDue(4000)).toBe(true)
    expect(life.nextFetchAfterSeconds()).toBeLessThanOrEqual(4000)
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
    const life = lifeOf()
    life.fetched(0, ['a'], maxAge)
    expect(life.health(refresh - 0.001).state).toBe('fresh')
    expect(life.health(refresh).state).toBe('stale')
    expect(life.health(expiry - 0.001).state).toBe('stale')
    expect(life.health(expiry).state).toBe('expired')
  })

  it('never brings the next refresh nearer than 5 s', () => {
    const hasty = lives.lifespanOf({ ...DEFAULTS, refreshSeconds: 0.001, maxStaleSeconds: 0.001 })
    const life = lifeOf(lives.COLD, hasty)
    life.fetched(0, ['a'], 10)
    expect(life.health(4.999).state).toBe('fresh')
    expect(life.health(5).state).toBe('stale')
    expect(life.health(9.999).state).toBe('stale')
    expect(life.health(10).state).toBe('expired')
  })
})

it('applies the floors of refreshSeconds and maxStaleSeconds', () => {
  const floors = { refreshSeconds: 5, maxStaleSeconds: 10 }
  const applied = (seconds: typeof floors) => lives.lifespanOf({ ...DEFAULTS, ...seconds })
  expect(applied({ refreshSeconds: 1, maxStaleSeconds: 1 })).toMatchObject(floors)
  expect(applied(floors)).toMatchObject(floors)
  const longer = { refreshSeconds: 6, maxStaleSeconds: 11 }
  expect(applied(longer)).toMatchObject(longer)
})

describe('a 304', () => {
  it('renews the set as it is', () => {
    const life = lifeOf()
    life.fetched(0, ['a'], 60)
    life.notModified(50, 60)
    expect(life.health(109)).toMatchObject({ state: 'stale', keys: ['a'] })
    expect(life.get().held?.validators).toEqual({ etag: '"1"' })
  })

  it('renews nothing that has expired, or never was', () => {
    const life = lifeOf()
    life.notModified(0, 60)
    expect(life.health(0).state).toBe('cold')
    life.fetched(0, ['a'], 60)
    life.notModified(60, 60)
    expect(life.health(60)).toMatchObject({ state: 'expired', keys: [] })
  })
})

describe('a failure', () => {
  it('takes nothing away, and says why until a fetch succeeds', () => {
    const life = lifeOf()
    life.fetched(0, ['a'])
    life.failed(10)
    expect(life.health(10)).toMatchObject({ state: 'fresh', keys: ['a'], lastError: 'network' })
    life.fetched(20, ['a'])
    expect(life.health(20)).not.toHaveProperty('lastError')
  })

  it('backs off from half a second to half a minute, doubling, with jitter', () => {
    for (const [jitter, backOffs] of [
      [0, [0.5, 1, 2, 4, 8, 15, 15, 15]],
      [1, [1, 2, 4, 8, 16, 30, 30, 30]],
    ] as const) {
      const life = lifeOf()
      for (const seconds of backOffs) {
        life.failed(0, jitter)
        expect(life.nextFetchAfterSeconds()).toBe(seconds)
        expect(life.isBackingOff(seconds - 0.001)).toBe(true)
        expect(life.isRefreshDue(seconds - 0.001)).toBe(false)
        expect(life.isBackingOff(seconds)).toBe(false)
        expect(life.isRefreshDue(seconds)).toBe(true)
      }
    }
  })

  it('does not back off for longer after a thousand failures', () => {
    const life = lifeOf()
    for (let count = 0; count < 2000; count++) life.failed(0, 1)
    expect(life.nextFetchAfterSeconds()).toBe(30)
  })

  it('starts over after a success', () => {
    const life = lifeOf()
    for (let count = 0; count < 9; count++) life.failed(0)
    life.fetched(0, ['a'])
    expect(life.isBackingOff(0)).toBe(false)
    life.failed(0)
    expect(life.nextFetchAfterSeconds()).toBe(0.5)
  })
})

describe('a supplied set', () => {
  it('is stale from the start and lives for maxStaleSeconds', () => {
    const life = lifeOf(lives.suppliedLife(keysOf('a'), T0, span))
    expect(life.health(0)).toMatchObject({ state: 'stale', keys: ['a'] })
    expect(life.isRefreshDue(0)).toBe(true)
    life.failed(1)
    expect(life.health(3599.999)).toMatchObject({ state: 'stale', keys: ['a'] })
    expect(life.health(3600)).toMatchObject({ state: 'expired', keys: [] })
  })

  it('gives way to the first set that is fetched, and is never confirmed by a 304', () => {
    const life = lifeOf(lives.suppliedLife(keysOf('a'), T0, span))
    expect(life.get().held?.validators).toBeUndefined()
    life.fetched(1, ['b'])
    expect(life.health(1)).toMatchObject({ state: 'fresh', keys: ['b'] })
  })
})

describe('a clock that was set back', () => {
  it('makes a refresh due at once', () => {
    const life = lifeOf()
    life.fetched(1000, ['a'])
    expect(life.isRefreshDue(999)).toBe(true)
    expect(life.health(999)).toMatchObject({ state: 'stale', ageSeconds: 0, keys: ['a'] })
  })

  it('does not lengthen a back-off beyond half a minute', () => {
    const life = lifeOf()
    life.failed(1000)
    expect(life.isBackingOff(1000)).toBe(true)
    expect(life.isBackingOff(900)).toBe(false)
  })
})
