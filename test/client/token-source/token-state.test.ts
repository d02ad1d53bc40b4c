import { describe, expect, it } from 'vitest'
import {
  TokenSourceError,
  type TokenSourceErrorCode,
} from '../../../src/client/token-source/token-source-error.js'
import * as lives from '../../../src/client/token-source/token-state.js'

const T0 = 5000

/** A life to which things happen, seconds after its start. */
function lifeOf(validitySeconds = 300) {
  let life = lives.COLD
  const at = (seconds: number): number => T0 + seconds * 1000
  const happen = (event: lives.LifeEvent): void => {
    life = lives.advance(life, event)
  }
  const asked = (seconds: number, isForced = false): void =>
    happen({ type: 'asked', at: at(seconds), isForced })
  const minted = (seconds: number, token: string): void =>
    happen({ type: 'minted', at: at(seconds), token, validitySeconds, jitter: 0 })
  const failed = (seconds: number, jitter = 0, code: TokenSourceErrorCode = 'core_failed'): void =>
    happen({ type: 'failed', at: at(seconds), error: new TokenSourceError(code), jitter })
  return {
    asked,
    minted,
    failed,
    obtained(seconds: number, token: string, isForced = false) {
      asked(seconds, isForced)
      minted(seconds, token)
    },
    lost(seconds: number, jitter = 0, code?: TokenSourceErrorCode) {
      asked(seconds)
      failed(seconds, jitter, code)
    },
    call(seconds: number, after?: string) {
      const answer = lives.answerTo(life, after, at(seconds))
      return answer.kind === 'failure' ? answer.error.code : answer
    },
    result: () => lives.tokenOf(life),
    health: (seconds: number) => lives.healthOf(life, at(seconds)),
  }
}

const given = (token: string, isRenewalDue = false) => ({ kind: 'token', token, isRenewalDue })
const renewal = (isForced = false, instead?: string) => ({ kind: 'renewal', isForced, instead })

describe('a held token', () => {
  // Renewed at 80 %; given until the smaller of 10 s and 10 % before its end.
  it.each([
    [30, 24, 27],
    [60, 48, 54],
    [100, 80, 90],
    [300, 240, 290],
    [3600, 2880, 3590],
  ])('of %d s is renewed after %d s and given for %d s', (validity, renewAt, endsAt) => {
    const life = lifeOf(validity)
    expect(life.call(0)).toEqual(renewal())
    life.obtained(0, 'a')
    expect(life.call(0)).toEqual(given('a'))
    expect(life.call(renewAt - 0.001)).toEqual(given('a'))
    expect(life.call(renewAt)).toEqual(given('a', true))
    expect(life.call(endsAt - 0.001)).toEqual(given('a', true))
    expect(life.call(endsAt)).toEqual(renewal())
  })

  it('counts from when it was asked for, not from when it came', () => {
    const life = lifeOf(300)
    life.asked(0)
    life.minted(40, 'a')
    expect(life.call(239.999)).toEqual(given('a'))
    expect(life.call(240)).toEqual(given('a', true))
    expect(life.call(290)).toEqual(renewal())
  })

  it('that came after its end is a failure', () => {
    const life = lifeOf(30)
    life.asked(0)
    life.minted(27, 'a')
    expect(() => life.result()).toThrow(expect.objectContaining({ code: 'core_timeout' }))
    expect(life.call(27)).toBe('core_timeout')
    expect(life.call(27.5)).toEqual(renewal())
  })

  it('is given while its renewal is under way, which is started once', () => {
    const life = lifeOf()
    life.obtained(0, 'a')
    life.asked(250)
    expect(life.call(251)).toEqual(given('a'))
    life.minted(252, 'b')
    expect(life.call(252)).toEqual(given('b'))
    expect(life.result()).toBe('b')
  })

  it('is not given when the clock was set back to before it was asked for', () => {
    const life = lifeOf()
    life.obtained(100, 'a')
    expect(life.call(99.999)).toEqual(renewal())
  })
})

describe('after a failure', () => {
  it('without a token calls fail at once until the back-off is over, then one asks again', () => {
    const life = lifeOf()
    life.lost(0)
    expect(life.call(0.499)).toBe('core_failed')
    expect(life.call(0.5)).toEqual(renewal())
    life.asked(0.5)
    expect(life.call(0.6)).toEqual(renewal())
    life.failed(0.7)
    expect(life.call(1.699)).toBe('core_failed')
    expect(life.call(1.7)).toEqual(renewal())
  })

  it.each([
    ['core_rejected', 15, 30],
    ['token_unexpected', 15, 30],
    ['core_unreachable', 2.5, 5],
    ['core_timeout', 2.5, 5],
    ['core_busy', 2.5, 5],
    ['core_failed', 2.5, 5],
  ] as const)('after %s waits half a second up to %d to %d s', (code, minSeconds, maxSeconds) => {
    const least = lifeOf()
    const most = lifeOf()
    for (let failure = 0; failure < 20; failure += 1) {
      least.lost(0, 0, code)
      most.lost(0, 1, code)
    }
    expect(least.health(0).retrySeconds).toBe(minSeconds)
    expect(most.health(0).retrySeconds).toBe(maxSeconds)
  })

  it('a token that is still good is given, and renewed once the back-off is over', () => {
    const life = lifeOf()
    life.obtained(0, 'a')
    life.lost(240)
    expect(life.call(240.499)).toEqual(given('a'))
    expect(life.call(240.5)).toEqual(given('a', true))
    life.lost(289.9)
    expect(life.call(290)).toBe('core_failed')
  })

  it('a success forgets the failures', () => {
    const life = lifeOf()
    life.lost(0)
    life.lost(1)
    life.obtained(5, 'a')
    expect(life.health(5)).toEqual({ state: 'fresh', ageSeconds: 0, usableSeconds: 290 })
    life.lost(250)
    expect(life.health(250).retrySeconds).toBe(0.5)
  })
})

describe('a refused token', () => {
  it('is renewed at once, and other calls get it meanwhile', () => {
    const life = lifeOf()
    life.obtained(0, 'a')
    expect(life.call(1, 'a')).toEqual(renewal(true, 'a'))
    life.asked(1, true)
    expect(life.call(1, 'a')).toEqual(renewal(false, 'a'))
    expect(life.call(1)).toEqual(given('a'))
    life.minted(1, 'b')
    expect(life.call(1, 'a')).toEqual(given('b'))
  })

  it('is renewed at most every 5 s, and in between comes back as it is', () => {
    const life = lifeOf()
    life.obtained(0, 'a')
    life.obtained(1, 'b', true)
    expect(life.call(5.999, 'b')).toEqual(given('b'))
    expect(life.call(6, 'b')).toEqual(renewal(true, 'b'))
    expect(life.call(5.999, 'a')).toEqual(given('b'))
  })

  it('waits for the renewal that is under way anyway', () => {
    const life = lifeOf()
    life.obtained(0, 'a')
    life.asked(240)
    expect(life.call(240, 'a')).toEqual(renewal(false, 'a'))
  })

  it('that is due for renewal does not count as forced', () => {
    const life = lifeOf()
    life.obtained(0, 'a')
    life.obtained(1, 'b', true)
    expect(life.call(241, 'b')).toEqual(renewal(false, 'b'))
  })

  it('comes back as it is while failures back off', () => {
    const life = lifeOf()
    life.obtained(0, 'a')
    life.lost(100)
    expect(life.call(100.499, 'a')).toEqual(given('a'))
    expect(life.call(100.5, 'a')).toEqual(renewal(true, 'a'))
  })

  it('is one like any other once its time is over', () => {
    const life = lifeOf()
    life.obtained(0, 'a')
    expect(life.call(290, 'a')).toEqual(renewal())
  })

  it('that the source does not hold gets the one that it holds', () => {
    const life = lifeOf()
    life.obtained(0, 'a')
    expect(life.call(1, 'of another source')).toEqual(given('a'))
  })
})

describe('health', () => {
  it('is cold, fresh, stale and expired in turn', () => {
    const life = lifeOf()
    expect(life.health(0)).toEqual({ state: 'cold' })
    life.obtained(0, 'a')
    expect(life.health(239)).toEqual({ state: 'fresh', ageSeconds: 239, usableSeconds: 51 })
    expect(life.health(240)).toEqual({ state: 'stale', ageSeconds: 240, usableSeconds: 50 })
    expect(life.health(290)).toEqual({ state: 'expired', ageSeconds: 290, usableSeconds: 0 })
  })

  it('tells why the last request failed and when the next may start', () => {
    const life = lifeOf()
    life.lost(0)
    const failure = { state: 'cold', lastError: 'core_failed' }
    expect(life.health(0.25)).toEqual({ ...failure, retrySeconds: 0.25 })
    expect(life.health(60)).toEqual({ ...failure, retrySeconds: 0 })
  })
})
