import { describe, expect, it } from 'vitest'
import {
  TokenSourceError,
  type TokenSourceErrorCode,
} from '../../../src/client/token-source/token-source-error.js'
import * as states from '../../../src/client/token-source/token-state.js'

const T0 = 5000

/** A life to which things happen, seconds after its start. */
function lifeOf(validitySeconds = 300) {
  let state = states.COLD
  const at = (seconds: number): number => T0 + seconds * 1000
  const dispatch = (event: states.TokenStateEvent): void => {
    state = states.advance(state, event)
  }
  const asked = (seconds: number, isForced = false): void =>
    dispatch({ type: 'requested', at: at(seconds), isForced })
  const minted = (seconds: number, token: string): void =>
    dispatch({ type: 'minted', at: at(seconds), token, validitySeconds, jitter: 0 })
  const failed = (seconds: number, jitter = 0, code: TokenSourceErrorCode = 'core_failed'): void =>
    dispatch({ type: 'failed', at: at(seconds), error: new TokenSourceError(code), jitter })
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
      const answer = states.answerTo(state, after, at(seconds))
      return answer.kind === 'failure' ? answer.error.code : answer
    },
    result: () => states.renewedToken(state),
    health: (seconds: number) => states.tokenHealth(state, at(seconds)),
  }
}

const given = (token: string, isRenewalDue = false) => ({ kind: 'token', token, isRenewalDue })
const renewal = (isForced = false, fallback?: string) => ({ kind: 'renewal', isForced, fallback })

describe('a current token', () => {
  // Renewed at 80 %; given until the smaller of 10 s and 10 % before its end.
  it.each([
    [30, 24, 27],
    [60, 48, 54],
    [100, 80, 90],
    [300, 240, 290],
    [3600, 2880, 3590],
  ])('of %d s is renewed after %d s and given for %d s', (validity, renewAt, endsAt) => {
    const state = lifeOf(validity)
    expect(state.call(0)).toEqual(renewal())
    state.obtained(0, 'a')
    expect(state.call(0)).toEqual(given('a'))
    expect(state.call(renewAt - 0.001)).toEqual(given('a'))
    expect(state.call(renewAt)).toEqual(given('a', true))
    expect(state.call(endsAt - 0.001)).toEqual(given('a', true))
    expect(state.call(endsAt)).toEqual(renewal())
  })

  it('counts from when it was asked for, not from when it came', () => {
    const state = lifeOf(300)
    state.asked(0)
    state.minted(40, 'a')
    expect(state.call(239.999)).toEqual(given('a'))
    expect(state.call(240)).toEqual(given('a', true))
    expect(state.call(290)).toEqual(renewal())
  })

  it('that came after its end is a failure', () => {
    const state = lifeOf(30)
    state.asked(0)
    state.minted(27, 'a')
    expect(() => state.result()).toThrow(expect.objectContaining({ code: 'core_timeout' }))
    expect(state.call(27)).toBe('core_timeout')
    expect(state.call(27.5)).toEqual(renewal())
  })

  it('is not given when the clock was set back to before it was asked for', () => {
    const state = lifeOf()
    state.obtained(100, 'a')
    expect(state.call(99.999)).toEqual(renewal())
  })
})

describe('after a failure', () => {
  it('without a token calls fail at once until the back-off is over, then one asks again', () => {
    const state = lifeOf()
    state.lost(0)
    expect(state.call(0.499)).toBe('core_failed')
    expect(state.call(0.5)).toEqual(renewal())
    state.asked(0.5)
    expect(state.call(0.6)).toEqual(renewal())
    state.failed(0.7)
    expect(state.call(1.699)).toBe('core_failed')
    expect(state.call(1.7)).toEqual(renewal())
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
    const state = lifeOf()
    state.obtained(0, 'a')
    state.lost(240)
    expect(state.call(240.499)).toEqual(given('a'))
    expect(state.call(240.5)).toEqual(given('a', true))
    state.lost(289.9)
    expect(state.call(290)).toBe('core_failed')
  })

  it('a success forgets the failures', () => {
    const state = lifeOf()
    state.lost(0)
    state.lost(1)
    state.obtained(5, 'a')
    expect(state.health(5)).toEqual({ state: 'fresh', ageSeconds: 0, usableSeconds: 290 })
    state.lost(250)
    expect(state.health(250).retrySeconds).toBe(0.5)
  })
})

describe('a refused token', () => {
  it('is renewed at once, and other calls get it meanwhile', () => {
    const state = lifeOf()
    state.obtained(0, 'a')
    expect(state.call(1, 'a')).toEqual(renewal(true, 'a'))
    state.asked(1, true)
    expect(state.call(1, 'a')).toEqual(renewal(false, 'a'))
    expect(state.call(1)).toEqual(given('a'))
    state.minted(1, 'b')
    expect(state.call(1, 'a')).toEqual(given('b'))
  })

  it('is renewed at most every 5 s, and in between comes back as it is', () => {
    const state = lifeOf()
    state.obtained(0, 'a')
    state.obtained(1, 'b', true)
    expect(state.call(1, 'b')).toEqual(given('b'))
    expect(state.call(5.999, 'b')).toEqual(given('b'))
    expect(state.call(6, 'b')).toEqual(renewal(true, 'b'))
    expect(state.call(5.999, 'a')).toEqual(given('b'))
  })

  it('is renewed at once where the clock was set back to before the last time', () => {
    const state = lifeOf()
    state.obtained(0, 'a')
    state.asked(100, true)
    state.failed(100)
    expect(state.call(50, 'a')).toEqual(renewal(true, 'a'))
  })

  it('that is due for renewal does not count as forced', () => {
    const state = lifeOf()
    state.obtained(0, 'a')
    state.obtained(1, 'b', true)
    expect(state.call(241, 'b')).toEqual(renewal(false, 'b'))
  })

  it('comes back as it is while failures back off', () => {
    const state = lifeOf()
    state.obtained(0, 'a')
    state.lost(100)
    expect(state.call(100.499, 'a')).toEqual(given('a'))
    expect(state.call(100.5, 'a')).toEqual(renewal(true, 'a'))
  })

  it('is one like any other once its time is over', () => {
    const state = lifeOf()
    state.obtained(0, 'a')
    expect(state.call(290, 'a')).toEqual(renewal())
  })
})

it('a renewal gives its token, or the error of its failure', () => {
  const state = lifeOf()
  state.obtained(0, 'a')
  expect(state.result()).toBe('a')
  state.lost(250)
  expect(() => state.result()).toThrow(expect.objectContaining({ code: 'core_failed' }))
})

describe('health', () => {
  it('is cold, fresh, stale and then expired, with the age and what is left', () => {
    const state = lifeOf(100)
    expect(state.health(0)).toEqual({ state: 'cold' })
    state.obtained(0, 'a')
    expect(state.health(-1)).toEqual({ state: 'expired', ageSeconds: 0, usableSeconds: 0 })
    expect(state.health(79)).toEqual({ state: 'fresh', ageSeconds: 79, usableSeconds: 11 })
    expect(state.health(80)).toEqual({ state: 'stale', ageSeconds: 80, usableSeconds: 10 })
    expect(state.health(90)).toEqual({ state: 'expired', ageSeconds: 90, usableSeconds: 0 })
  })

  it('tells why the last request failed and when the next may start', () => {
    const state = lifeOf()
    state.lost(0)
    const failure = { state: 'cold', lastError: 'core_failed' }
    expect(state.health(0.25)).toEqual({ ...failure, retrySeconds: 0.25 })
    expect(state.health(60)).toEqual({ ...failure, retrySeconds: 0 })
  })
})
