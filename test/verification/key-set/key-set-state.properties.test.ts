import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { VerificationKey } from '../../../src/verification/key-set/key-set.js'
import * as states from '../../../src/verification/key-set/key-set-state.js'

const NAMES = ['a', 'b', 'c', 'd']
const START = 1_800_000_000_000

const seconds = fc.oneof(fc.integer({ min: 10, max: 100 }), fc.integer({ min: 10, max: 10_000 }))
const left = fc.option(seconds, { nil: undefined })
const keys = fc
  .subarray(NAMES, { minLength: 1 })
  .map((kids): ReadonlyMap<string, VerificationKey> => {
    return new Map(kids.map((kid) => [kid, { kid, jwk: { kty: 'RSA', n: kid, e: 'AQAB' } }]))
  })

type Happening = states.KeySetStateEvent extends infer E
  ? E extends unknown
    ? Omit<E, 'at'>
    : never
  : never

const happening: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({
    type: fc.constant('fetched' as const),
    keys,
    leftSeconds: left,
    maxAgeSeconds: left,
    validators: fc.constant(undefined),
  }),
  fc.record({ type: fc.constant('not_modified' as const), leftSeconds: left, maxAgeSeconds: left }),
  fc.record({
    type: fc.constant('failed' as const),
    code: fc.constantFrom('timeout' as const, 'network' as const, 'no_usable_key' as const),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  fc.constant({ type: 'time_passed' as const }),
)

const gapMs = fc.oneof(fc.nat({ max: 5000 }), fc.nat({ max: 200_000 }), fc.nat({ max: 9_000_000 }))
const story = fc.array(fc.tuple(gapMs, happening), { maxLength: 40 })
const lifespanWith = (staleIfErrorSeconds: number[]) =>
  fc
    .record({
      refreshSeconds: seconds,
      maxStaleSeconds: seconds,
      staleIfErrorSeconds: fc.constantFrom(...staleIfErrorSeconds),
      timeoutMs: fc.constantFrom(1, 3000, 60_000),
    })
    .map(states.lifespanOf)
const byDefault = lifespanWith([0])
const beginning = fc.option(keys, { nil: undefined })

interface Moment {
  readonly before: states.KeySetState
  readonly after: states.KeySetState
  readonly event: states.KeySetStateEvent
  readonly span: states.Lifespan
}

/** Tells every story, and looks at each of its moments. */
function inEveryStory(look: () => (moment: Moment) => void, lifespan = byDefault): void {
  fc.assert(
    fc.property(story, lifespan, beginning, (events, span, supplied) => {
      const see = look()
      let at = START
      let before = supplied === undefined ? states.COLD : states.initialState(supplied, START, span)
      for (const [gap, happened] of events) {
        at += gap
        const event = { ...happened, at } as states.KeySetStateEvent
        const after = states.advance(before, event, span)
        see({ before, after, event, span })
        before = after
      }
    }),
    { numRuns: 1000 },
  )
}

/** What may be used at this moment, the way the key set asks. */
const usableAt = (
  state: states.KeySetState,
  at: number,
  span: states.Lifespan,
): states.KeySetState['current'] =>
  states.usableState(states.advance(state, { type: 'time_passed', at }, span), at, span).current

it('never makes an expired set usable: only a new one is', () => {
  inEveryStory(() => ({ before, after, event, span }) => {
    if (event.type === 'fetched' || usableAt(before, event.at, span) !== undefined) return
    expect(usableAt(after, event.at, span)).toBeUndefined()
  })
})

it('never uses a set longer than maxStaleSeconds, or than its max-age, after the last success', () => {
  inEveryStory(() => {
    let usableUntil = Number.POSITIVE_INFINITY
    return ({ after, event, span }) => {
      if (usableUntil === Number.POSITIVE_INFINITY)
        usableUntil = START + span.maxStaleSeconds * 1000
      const confirms = event.type === 'not_modified' && event.at < usableUntil
      if (event.type === 'fetched' || confirms) {
        const lifeSeconds = Math.min(
          event.leftSeconds ?? span.maxStaleSeconds,
          span.maxStaleSeconds,
        )
        usableUntil = event.at + lifeSeconds * 1000
      }
      expect(usableAt(after, usableUntil, span)).toBeUndefined()
      if (after.current !== undefined) {
        expect(usableAt(after, usableUntil - 1, span)).toBe(after.current)
      }
    }
  })
})

it('uses a set past its max-age only after a failed fetch, and for as long as staleIfErrorSeconds says', () => {
  const look = () => {
    let freshUntil = Number.POSITIVE_INFINITY
    let failedAt = Number.NEGATIVE_INFINITY
    return ({ after, event, span }: Moment) => {
      if (event.type === 'failed') failedAt = event.at
      if (after.current !== undefined) freshUntil = after.current.freshUntil
      if (after.lastFailure === undefined) failedAt = Number.NEGATIVE_INFINITY
      const until = freshUntil + span.staleIfErrorSeconds * 1000
      for (const at of [event.at, event.at + 10_000, freshUntil, until - 1, until]) {
        if (!Number.isFinite(at) || at < Math.max(event.at, freshUntil)) continue
        const current = usableAt(after, at, span)
        if (current === undefined) continue
        expect(at).toBeLessThan(until)
        expect(at - current.fetchedAt).toBeLessThan(span.maxStaleSeconds * 1000)
        expect(at - failedAt).toBeLessThan(30_000 + span.fetchSeconds * 1000)
      }
    }
  }
  inEveryStory(look, lifespanWith([1, 60, 3600]))
})

it('never holds a key that the last good response lacked', () => {
  inEveryStory(() => {
    let published: ReadonlySet<string> = new Set(NAMES)
    return ({ after, event }) => {
      if (event.type === 'fetched') published = new Set(event.keys.keys())
      for (const kid of after.current?.keys.keys() ?? []) expect(published.has(kid)).toBe(true)
    }
  })
})

it('refreshes no sooner than 5 s after a success, and in time for the set to live on', () => {
  inEveryStory(() => ({ after, span }) => {
    const { current } = after
    if (current === undefined || current.refreshAt === current.fetchedAt) return
    const dueAfterMs = current.refreshAt - current.fetchedAt
    expect(dueAfterMs).toBeGreaterThanOrEqual(5000)
    expect(dueAfterMs).toBeLessThanOrEqual(span.refreshSeconds * 1000)
    expect(current.expiresAt - current.refreshAt).toBeGreaterThanOrEqual(5000)
  })
})

it('is in exactly one state, and that state says whether there are keys', () => {
  inEveryStory(() => ({ after, event, span }) => {
    const now = states.advance(after, { type: 'time_passed', at: event.at }, span)
    const { state, keys } = states.keySetHealth(now, event.at)
    expect(keys.length > 0).toBe(state === 'fresh' || state === 'stale')
    expect(state === 'stale').toBe(now.current !== undefined && event.at >= now.current.refreshAt)
    expect(JSON.parse(JSON.stringify(states.keySetHealth(now, event.at)))).toMatchObject({ state })
  })
})
