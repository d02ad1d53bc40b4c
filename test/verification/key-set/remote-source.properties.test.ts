import { randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setImmediate as nextTick } from 'node:timers/promises'
import { type KeySetEvent, remoteKeySet } from 'express-service-auth'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { keySourceOf, NOT_LOOKED_UP } from '../../../src/verification/key-set/key-set.js'
import { shapeOfKey } from '../../support/issuer/signing-keys.js'
import { type ManualClock, manualClock } from '../../support/manual-clock.js'

const KIDS = ['a', 'b', 'c']
const JWKS = new Map(KIDS.map((kid) => [kid, shapeOfKey(kid, 2048)]))
const MAX_STALE_SECONDS = 100
const CHANNEL = 'express-service-auth:keys'

interface Publication {
  readonly kids: readonly string[]
  readonly maxAge: number | null
}

type Step =
  | ({ readonly type: 'publish' } & Publication)
  | { readonly type: 'fall ill'; readonly status: number }
  | { readonly type: 'pass'; readonly seconds: number }
  /** What is under way arrives. */
  | { readonly type: 'arrive' }
  | { readonly type: 'ask'; readonly kid: string }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    type: fc.constant('publish' as const),
    kids: fc.subarray(KIDS),
    maxAge: fc.option(fc.integer({ min: 0, max: 200 })),
  }),
  fc.record({ type: fc.constant('fall ill' as const), status: fc.constantFrom(304, 404, 500) }),
  fc.record({ type: fc.constant('pass' as const), seconds: fc.integer({ min: 1, max: 120 }) }),
  fc.record({ type: fc.constant('arrive' as const) }),
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constant('ask' as const), kid: fc.constantFrom(...KIDS, 'z') }),
  },
)

it('finds a key only where the last good response had it, and not longer than that may be used', async () => {
  const story = fc.array(step, { minLength: 3, maxLength: 12 })
  await fc.assert(fc.asyncProperty(story, follow), { numRuns: 40, examples: STORIES })
}, 60_000)

const publish = (maxAge: number): Step => ({ type: 'publish', kids: ['a'], maxAge })
const pass = (seconds: number): Step => ({ type: 'pass', seconds })
const ask: Step = { type: 'ask', kid: 'a' }
const arrive: Step = { type: 'arrive' }
const fallIll: Step = { type: 'fall ill', status: 500 }

const STORIES: [Step[]][] = [
  // To the second.
  [[publish(30), ask, fallIll, pass(29), ask, pass(1), ask]],
  // Refreshed in the background: the response arrives when the first one's time is over,
  [[publish(0), ask, pass(5), ask, pass(10), ask]],
  // and when a part of its own is.
  [[publish(40), ask, pass(20), ask, pass(15), arrive, fallIll, pass(24), ask, pass(1), ask]],
]

async function follow(steps: readonly Step[]): Promise<void> {
  const clock = manualClock()
  const core = openCore(clock)
  const { fetch } = core
  const jwksUri = `https://core.example/${randomUUID()}`
  const keySet = remoteKeySet({ jwksUri, fetch, clock, maxStaleSeconds: MAX_STALE_SECONDS })
  const source = keySourceOf(keySet)
  const onEvent = (event: unknown): void => {
    const { type, jwksUri: from } = event as KeySetEvent
    if (type === 'fetched' && from === jwksUri) core.arrived()
  }
  subscribe(CHANNEL, onEvent)

  try {
    for (const next of steps) {
      if (next.type === 'publish') core.publish(next)
      if (next.type === 'fall ill') core.fallIll(next.status)
      if (next.type === 'pass') clock.advance(next.seconds)
      if (next.type === 'arrive') await core.settled()
      if (next.type !== 'ask') continue
      // What is under way may arrive after the set has answered and before the answer is looked at.
      const before = core.usable()
      const found = await Promise.resolve(source?.find(next.kid)).catch(() => undefined)
      if (found !== undefined && found !== NOT_LOOKED_UP)
        expect([...before, ...core.usable()]).toContain(next.kid)
      expect(source?.current(next.kid) !== undefined).toBe(core.usable().includes(next.kid))
    }
  } finally {
    unsubscribe(CHANNEL, onEvent)
    keySet.close()
  }
}

/** A core that publishes keys, and the key ids of its last good response while they may be used. */
function openCore(clock: ManualClock) {
  let published: Publication | undefined
  let illness = 500
  let sent: { readonly publication: Publication; readonly askedAt: number } | undefined
  let good: { readonly kids: readonly string[]; readonly until: number } | undefined
  let isUnderWay = false

  return {
    async fetch(): Promise<Response> {
      const askedAt = clock()
      isUnderWay = true
      // Time passes before the response or after its arrival, and not in between.
      await nextTick()
      // A response without keys changes nothing, like no response.
      isUnderWay = published !== undefined && published.kids.length > 0
      if (published === undefined) return new Response(null, { status: illness })
      sent = { publication: published, askedAt }
      const { kids, maxAge } = published
      const headers = maxAge === null ? {} : { 'cache-control': `max-age=${maxAge}` }
      return Response.json({ keys: kids.map((kid) => JWKS.get(kid)) }, { headers })
    },
    publish(publication: Publication): void {
      published = publication
    },
    fallIll(status: number): void {
      published = undefined
      illness = status
    },
    async settled(): Promise<void> {
      while (isUnderWay) await nextTick()
    },
    arrived(): void {
      isUnderWay = false
      if (sent === undefined) return
      const { kids, maxAge } = sent.publication
      const delaySeconds = (clock() - sent.askedAt) / 1000
      const freshSeconds = Math.max(10, (maxAge ?? Number.POSITIVE_INFINITY) - delaySeconds)
      good = { kids, until: clock() + Math.min(freshSeconds, MAX_STALE_SECONDS) * 1000 }
    },
    usable: (): readonly string[] => (good !== undefined && clock() < good.until ? good.kids : []),
  }
}
